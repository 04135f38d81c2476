-- The last sequence of a lease that may have in_share messages after the sequence in_start: whole
-- segments while they begin within in_bytes, and the first segment in any case. For one message no
-- bytes are counted, because most pops want one. Written so that it becomes part of the statement
-- that calls it; use its result once there, because every use computes it again.
-- locks: nothing
create or replace function {schema}.lease_end(in_partition int, in_start bigint, in_share bigint, in_bytes bigint)
returns table (through bigint)
language sql
stable
as $reveille$
  select case
    when in_share <= 1 then in_start + greatest(in_share, 0)
    else least(in_start + in_share, (
      select pg_catalog.max(weighed.last_seq)
      from (
        select segment.last_seq,
               pg_catalog.sum(segment.bytes) over (order by segment.last_seq) - segment.bytes as before,
               pg_catalog.row_number() over (order by segment.last_seq) as place
        from {schema}.segment
        where segment.partition = in_partition
          and segment.last_seq > in_start
          and segment.last_seq <= (
            select ending.last_seq
            from {schema}.segment as ending
            where ending.partition = in_partition and ending.last_seq >= in_start + in_share
            order by ending.last_seq
            limit 1
          )
      ) as weighed
      where weighed.place = 1 or weighed.before < in_bytes
    ))
  end
$reveille$;

comment on function {schema}.lease_end(int, bigint, bigint, bigint) is 'Reveille: the last sequence of a lease';
