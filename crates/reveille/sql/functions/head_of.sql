-- The head of a partition and where it lies, looked up as cursor_of looks up cursors. Written so
-- that it becomes part of the statement that calls it.
-- locks: nothing
create or replace function {schema}.head_of(in_partition int)
returns table (tid tid, queue int, next_seq bigint, first_seq bigint, last_at timestamptz)
language sql
stable
as $reveille$
  select newest.tid, newest.queue, newest.next_seq, newest.first_seq, newest.last_at
  from (
    select head.ctid as tid, head.*
    from {schema}.head
    where head.partition <= in_partition
      and (head.partition, head.queue) >= (in_partition, 0)
    order by head.partition desc
    limit 1
  ) as newest
  where newest.partition = in_partition
$reveille$;

comment on function {schema}.head_of(int) is 'Reveille: where the head of a partition lies';
