-- Create cursors for a group that is being created, in partitions above in_after, ascending, at
-- most in_most of them. Returns the last of these; null if there are none, or if the group is not
-- being created any more. In partitions up to in_through, which existed when the group registered,
-- it begins as its subscription says; in later ones at their beginning. An existing cursor stays as
-- it is, so that a process that goes on after another one died may begin with the first partition
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

comment on function {schema}.make_cursors(int, int, int, int) is 'Reveille: creates cursors of a new consumer group';
