-- Move the outbox of these queues into their logs, at most about in_limit messages; partitions that
-- do not exist are created. Does nothing while pushes are paused.
-- locks: the queues' rows for key share; then the partition rows, ascending; the dedup rows of the
--        keys
create or replace function {schema}.move_outbox(in_queues text[], in_limit int)
returns table (queue int, partition int, taken bigint, moved bigint)
language plpgsql
as $reveille$
#variable_conflict use_column
declare
  names text[];
  parts text[];
  places int[];
begin
  if exists (select from {schema}.switch where switch.name = 'push_paused' and switch.engaged) then
    return;
  end if;
  -- All partitions at once: created queue by queue, two callers could deadlock.
  select pg_catalog.array_agg(pending.queue), pg_catalog.array_agg(pending.partition)
  into names, parts
  from (
    select distinct oldest.queue, oldest.partition
    -- A range of one name: with an equality PostgreSQL might read the rows of all queues in the
    -- order of their ids.
    from pg_catalog.unnest(in_queues) as wanted (name)
    cross join lateral (
      select outbox.queue, outbox.partition
      from {schema}.outbox
      where outbox.queue >= wanted.name and outbox.queue <= wanted.name
      order by outbox.queue, outbox.id
      limit in_limit
    ) as oldest
  ) as pending;
  if names is null then
    return;
  end if;
  places := array(select made.partition from {schema}.ensure_all(names, parts) as made);
  return query select * from {schema}.move_partitions(places, in_limit);
end
$reveille$;

comment on function {schema}.move_outbox(text[], int) is 'Reveille: moves the outbox of queues into their logs';
