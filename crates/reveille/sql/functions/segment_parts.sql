-- The messages of a partition after the sequence in_start and up to in_through, as the group sees
-- them: one row for each segment that has some, with the arrays cut to the range. `first` is the
-- sequence of the first message of the row, `gone` the sequences that the group must not see.
-- Written so that it becomes part of the statement that calls it.
-- locks: nothing
create or replace function {schema}.segment_parts(in_partition int, in_start bigint, in_through bigint, in_grp int)
returns table (first bigint, at timestamptz, key_id int, gone bigint[], ids uuid[], transaction_ids text[],
               payloads bytea[], trace_ids uuid[], producers text[])
language sql
stable
as $reveille$
  select greatest(in_start + 1, segment.last_seq - segment.n + 1),
         segment.at,
         segment.key_id,
         case
           when segment.only_grp <> in_grp
             then array(select pg_catalog.generate_series(segment.last_seq - segment.n + 1, segment.last_seq))
           when segment.gone is not null
             then array(select segment.last_seq - segment.n + position from pg_catalog.unnest(segment.gone) as position)
         end,
         segment.ids[cut.lo:cut.hi],
         segment.transaction_ids[cut.lo:cut.hi],
         segment.payloads[cut.lo:cut.hi],
         segment.trace_ids[cut.lo:cut.hi],
         segment.producers[cut.lo:cut.hi]
  from {schema}.segment
  cross join lateral (
    select greatest(1, in_start - segment.last_seq + segment.n + 1)::int as lo,
           least(segment.n, in_through - segment.last_seq + segment.n)::int as hi
  ) as cut
  where segment.partition = in_partition
    and segment.last_seq > in_start
    and segment.last_seq <= (
      select ending.last_seq
      from {schema}.segment as ending
      where ending.partition = in_partition and ending.last_seq >= in_through
      order by ending.last_seq
      limit 1
    )
$reveille$;

comment on function {schema}.segment_parts(int, bigint, bigint, int) is 'Reveille: the messages of a range, segment by segment';
