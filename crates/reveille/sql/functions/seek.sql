-- Move a group's cursors to another place, in partitions of one queue above in_after, ascending, at
-- most in_most of them; or in one named partition. place: 'beginning', 'end', 'time' (in_at: the
-- first message that is not older), 'sequence' (in_seq: the last one to count as settled),
-- 'subscription' (where the group began). Whoever has a lease loses it. What is not kept any more
-- cannot be sought: then the first message that is kept is next, and clamped says so.
-- locks: cursors ascending, after those that were not there are made: whoever makes one waits for
--        others who make it, and must not hold what they wait for
create or replace function {schema}.seek(
  in_group int, in_partition int, in_after int, in_most int, in_place text, in_at timestamptz, in_seq bigint
)
returns table (partition int, committed bigint, clamped boolean, more boolean)
language plpgsql
as $reveille$
#variable_conflict use_column
declare
  top record;
  told bigint;
  wanted bigint;
begin
  insert into {schema}.cursor (partition, grp, upto, due_at)
  select near.partition, in_group, near.newest, case when near.newest > 0 then pg_catalog.clock_timestamp() end
  from (
    select partition_row.partition, partition_row.next_seq - 1 as newest
    from {schema}.consumer_group
    join {schema}.partition_row on partition_row.queue = consumer_group.queue
    where consumer_group.id = in_group
      and partition_row.partition > in_after
      and (in_partition is null or partition_row.partition = in_partition)
    order by partition_row.partition
    limit in_most
  ) as near
  where not exists (
    select from {schema}.cursor_made where cursor_made.partition = near.partition and cursor_made.grp = in_group
  )
  order by near.partition
  on conflict do nothing;

  for top in
    select partition_row.partition, partition_row.first_seq, consumer_group.mode,
           case consumer_group.mode when 'from' then consumer_group.from_at else consumer_group.created_at end as began
    from {schema}.consumer_group
    join {schema}.partition_row on partition_row.queue = consumer_group.queue
    where consumer_group.id = in_group
      and partition_row.partition > in_after
      and (in_partition is null or partition_row.partition = in_partition)
    order by partition_row.partition
    limit in_most
  loop
    select cursor.upto into told
    from {schema}.cursor
    where cursor.partition = top.partition and cursor.grp = in_group
    for update;
    -- A partition that was made in this moment is not sought: its group begins there as in every
    -- later one.
    continue when not found;
    -- Another statement, so that it sees what was pushed while we waited.
    select greatest(told, partition_row.next_seq - 1), partition_row.first_seq into strict told, top.first_seq
    from {schema}.partition_row
    where partition_row.partition = top.partition;
    wanted := case
      when in_place = 'end' then told
      when in_place = 'sequence' then in_seq
      when in_place = 'time' then {schema}.seq_at(top.partition, top.first_seq - 1, told, in_at)
      when in_place = 'subscription' and top.mode <> 'all'
        then {schema}.seq_at(top.partition, top.first_seq - 1, told, top.began)
      else 0
    end;
    partition := top.partition;
    committed := least(greatest(wanted, top.first_seq - 1), told);
    clamped := wanted > told or (top.first_seq > 1 and (
      wanted < top.first_seq - 1
      or (in_place = 'time' and wanted = top.first_seq - 1 and in_at < coalesce((
        select segment.at
        from {schema}.segment
        where segment.partition = top.partition and segment.last_seq >= top.first_seq
        order by segment.last_seq
        limit 1
      ), 'infinity'))
    ));
    more := told > committed;
    update {schema}.cursor
    set committed = seek.committed,
        upto = told,
        due_at = case when more then pg_catalog.clock_timestamp() end,
        lease_until = null,
        epoch = cursor.epoch + 1,
        nonce = pg_catalog.gen_random_uuid(),
        failures = 0,
        deliveries = 0
    where cursor.partition = top.partition and cursor.grp = in_group;
    return next;
  end loop;
end
$reveille$;

comment on function {schema}.seek(int, int, int, int, text, timestamptz, bigint)
  is 'Reveille: moves a consumer group to another place';
