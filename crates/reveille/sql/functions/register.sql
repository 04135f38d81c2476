-- Create a group of a queue, with a cursor for every partition, and return its id; the first
-- registration decides where it begins. In later partitions it begins at their beginning. Returns
-- nothing if the queue is gone, and no id if the queue has in_groups groups already.
--
-- With more than in_most partitions the group is only begun, and through is the last partition: the
-- caller creates its cursors a few at a time (make_cursors), and ends with finish_group. Until then
-- the group has begun_for instead of queue, so that a search by queue does not find it: neither
-- consumers nor mark_ready know it. Its cursors stay as long as its row, and a process that
-- registers it after another one died goes on with them. The queue's row is locked for a moment
-- only, but long enough that every partition up to through is committed.
--
-- The caller must let the group catch up in a later transaction: see finish_group.
-- locks: the queue's row, so that no partition is created meanwhile
create or replace function {schema}.register(
  in_queue int, in_name text, in_mode text, in_from timestamptz, in_groups int default 2147483647, in_most int default 2147483647
)
returns table (grp int, through int)
language plpgsql
as $reveille$
declare
  wide boolean;
begin
  perform from {schema}.queue where queue.id = in_queue for update;
  if not found then
    return;
  end if;
  grp := (select consumer_group.id from {schema}.consumer_group where queue = in_queue and name = in_name);
  if grp is not null then
    return next;
    return;
  end if;
  grp := (select consumer_group.id from {schema}.consumer_group where begun_for = in_queue and name = in_name);
  if grp is null then
    if in_groups <= (
      select pg_catalog.count(*)
      from (
        select from {schema}.consumer_group where queue = in_queue or begun_for = in_queue limit in_groups
      ) as known
    ) then
      return next;
      return;
    end if;
    insert into {schema}.consumer_group (begun_for, name, mode, from_at)
    values (in_queue, in_name, in_mode, in_from)
    returning id into grp;
  else
    -- Upkeep removes a group that is not finished within an hour.
    update {schema}.consumer_group set created_at = pg_catalog.clock_timestamp() where consumer_group.id = grp;
  end if;
  through := coalesce((select pg_catalog.max(partition_row.partition) from {schema}.partition_row where partition_row.queue = in_queue), 0);
  wide := in_most < (
    select pg_catalog.count(*)
    from (
      select from {schema}.partition_row where partition_row.queue = in_queue limit in_most::bigint + 1
    ) as counted
  );
  if not wide then
    perform {schema}.make_cursors(grp, 0, through, 2147483647);
    update {schema}.consumer_group set queue = in_queue, begun_for = null where consumer_group.id = grp;
    through := null;
  end if;
  return next;
end
$reveille$;

comment on function {schema}.register(int, text, text, timestamptz, int, int) is 'Reveille: registers a consumer group';
