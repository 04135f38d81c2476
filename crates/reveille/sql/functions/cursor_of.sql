-- The cursor of a group in a partition and its ctid, read from the newest version back: while a
-- transaction elsewhere is held open, no version goes away (decision 0018). The two bounds differ
-- in shape on purpose: with two alike the planner expects few rows, and sorts them. Written so that
-- it becomes part of the statement that calls it.
-- locks: nothing
create or replace function {schema}.cursor_of(in_partition int, in_grp int)
returns table (tid tid, committed bigint, upto bigint, due_at timestamptz, leased_through bigint, nonce uuid)
language sql
stable
as $reveille$
  select newest.tid, newest.committed, newest.upto, newest.due_at, newest.leased_through, newest.nonce
  from (
    select cursor.ctid as tid, cursor.*
    from {schema}.cursor
    where (cursor.partition, cursor.grp) <= (in_partition, in_grp)
      and cursor.partition >= in_partition
    order by cursor.partition desc, cursor.grp desc
    limit 1
  ) as newest
  where newest.partition = in_partition and newest.grp = in_grp
$reveille$;

comment on function {schema}.cursor_of(int, int) is 'Reveille: where a group''s cursor in a partition lies';
