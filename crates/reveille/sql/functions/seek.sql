-- Move a group's cursors to another position, in partitions of one queue above in_after, ascending,
-- at most in_most of them; or in one named partition. in_place: 'beginning', 'end', 'time' (in_at:
-- the first message that is not older), 'sequence' (in_seq: the last one to count as settled),
-- 'subscription' (where the group began). Leases there are lost. If the position is not kept any
-- more, the first message that is kept is next, and clamped is true.
-- locks: cursors ascending, after missing cursors were created: creating one waits for others that
--        create it, and must not hold a lock that they wait for
create or replace function {schema}.seek(
  in_group int, in_partition int, in_after int, in_most int, in_place text, in_at timestamptz, in_seq bigint
)
returns table (partition int, committed bigint, clamped boolean, more boolean)
language plpgsql
as $reveille$
#variable_conflict use_column
declare
  top record;
  newest bigint;
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
    select cursor.upto into newest
    from {schema}.cursor
    where cursor.partition = top.partition and cursor.grp = in_group
    for update;
    -- A partition that was created meanwhile is left out: the group begins there as in every later
    -- partition.
    continue when not found;
    -- A statement of its own, so that it sees pushes from the time of the wait.
    select greatest(newest, partition_row.next_seq - 1), partition_row.first_seq into strict newest, top.first_seq
    from {schema}.partition_row
    where partition_row.partition = top.partition;
    wanted := case
      when in_place = 'end' then newest
      when in_place = 'sequence' then in_seq
      when in_place = 'time' then {schema}.seq_at(top.partition, top.first_seq - 1, newest, in_at)
      when in_place = 'subscription' and top.mode <> 'all'
        then {schema}.seq_at(top.partition, top.first_seq - 1, newest, top.began)
      else 0
    end;
    partition := top.partition;
    committed := least(greatest(wanted, top.first_seq - 1), newest);
    clamped := wanted > newest or (top.first_seq > 1 and (
      wanted < top.first_seq - 1
      or (in_place = 'time' and wanted = top.first_seq - 1 and in_at < coalesce((
        select segment.at
        from {schema}.segment
        where segment.partition = top.partition and segment.last_seq >= top.first_seq
        order by segment.last_seq
        limit 1
      ), 'infinity'))
    ));
    more := newest > committed;
    update {schema}.cursor
    set committed = seek.committed,
        upto = newest,
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
  is 'Reveille: moves a consumer group to another position';
