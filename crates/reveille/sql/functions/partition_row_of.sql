-- The partition row of a partition and its ctid, read as cursor_of reads cursors. Written so that
-- it becomes part of the statement that calls it.
-- locks: nothing
create or replace function {schema}.partition_row_of(in_partition int)
returns table (tid tid, queue int, next_seq bigint, first_seq bigint, last_at timestamptz)
language sql
stable
as $reveille$
  select newest.tid, newest.queue, newest.next_seq, newest.first_seq, newest.last_at
  from (
    select partition_row.ctid as tid, partition_row.*
    from {schema}.partition_row
    where partition_row.partition <= in_partition
      and (partition_row.partition, partition_row.queue) >= (in_partition, 0)
    order by partition_row.partition desc
    limit 1
  ) as newest
  where newest.partition = in_partition
$reveille$;

comment on function {schema}.partition_row_of(int) is 'Reveille: the partition row of a partition';
