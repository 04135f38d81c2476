-- Make cursors for a group that is being made, in partitions above in_after, ascending, at most
-- in_most of them, and return the last of these; null when there are none, or when the group is not
-- being made any more. Partitions up to in_through were there when the group asked to begin, and it
-- begins in them as it said; in later ones it begins at their beginning. A cursor that is there
-- stays as it is, so that whoever comes after somebody who died may begin from the first partition
-- again.
-- locks: the new cursors, ascending
create or replace function {schema}.make_cursors(in_group int, in_after int, in_through int, in_most int)
returns int
language plpgsql
as $reveille$
declare
  owner int;
  begins text;
  since timestamptz;
  last int;
begin
  select consumer_group.begun_for, consumer_group.mode, consumer_group.from_at
  into owner, begins, since
  from {schema}.consumer_group
  where consumer_group.id = in_group and consumer_group.begun_for is not null;
  if not found then
    return null;
  end if;
  select pg_catalog.max(near.partition)
  into last
  from (
    select partition_row.partition
    from {schema}.partition_row
    where partition_row.queue = owner and partition_row.partition > in_after
    order by partition_row.partition
    limit in_most
  ) as near;
  if last is null then
    return null;
  end if;

  -- The table cursor_made keeps a second cursor from being made.
  insert into {schema}.cursor (partition, grp, committed, upto, due_at)
  select begun.partition, in_group, begun.committed, begun.newest,
         case when begun.newest > begun.committed then pg_catalog.clock_timestamp() end
  from (
    select partition_row.partition, partition_row.next_seq - 1 as newest,
           case
             when begins = 'all' or partition_row.partition > in_through then partition_row.first_seq - 1
             when begins = 'new' then partition_row.next_seq - 1
             else coalesce((
               select segment.last_seq - segment.n
               from {schema}.segment
               where segment.partition = partition_row.partition and segment.last_seq >= partition_row.first_seq and segment.at >= since
               order by segment.last_seq
               limit 1
             ), partition_row.next_seq - 1)
           end as committed
    from {schema}.partition_row
    where partition_row.queue = owner and partition_row.partition > in_after and partition_row.partition <= last
    order by partition_row.partition
  ) as begun;
  return last;
end
$reveille$;

comment on function {schema}.make_cursors(int, int, int, int) is 'Reveille: makes cursors of a consumer group that is being made';
