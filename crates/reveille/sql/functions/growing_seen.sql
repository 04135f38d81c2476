-- The growing keys that were pushed to these partitions (parallel arrays, partitions repeated)
-- within their window, and the first message of each. A key is searched in the one span of the log
-- whose range has it, and in the runs. The caller holds the partition rows. The function is
-- volatile, so it sees what was committed before they were locked, even if the calling statement
-- began too early to see it. One statement does it, so that a sweep which moves keys from the log
-- to the runs is seen as a whole. Tables are read row by row in lateral joins: a plan that joins
-- them whole would be good while they are small, and would be kept.
--
-- Steps:
--   held      the partitions, their open span and since when keys count
--   searched  the keys that may have been seen: none greater than all before them
--   spans     the part of the log where each of them lies, if it lies there
--   logged    the ids in those parts of the log
--   found     the keys that are among these ids, or in the runs
-- locks: nothing
create or replace function {schema}.growing_seen(in_partitions int[], in_keys uuid[])
returns table (partition int, key uuid, id uuid)
language plpgsql
volatile
as $reveille$
#variable_conflict use_column
begin
  return query
  with held as materialized (
    select given.partition, partition_row.key_high, partition_row.span_from, partition_row.span_to,
           partition_row.span_low, partition_row.span_high, pg_catalog.clock_timestamp() - queue.dedup_window as since
    from (select distinct place from pg_catalog.unnest(in_partitions) as place) as given (partition)
    cross join lateral (
      -- From the newest version back, as partition_row_of.
      select *
      from {schema}.partition_row
      where partition_row.partition <= given.partition
        and (partition_row.partition, partition_row.queue) >= (given.partition, 0)
      order by partition_row.partition desc
      limit 1
    ) as partition_row
    join {schema}.queue on queue.id = partition_row.queue
    where partition_row.partition = given.partition
  ), searched as materialized (
    select held.*, given.key, given.key::text as name
    from unnest(in_partitions, in_keys) as given (partition, key)
    join held on held.partition = given.partition
    -- A key greater than all before it is new.
    where given.key <= held.key_high
  ), spans as materialized (
    select searched.partition, searched.since, span.first_seq, span.last_seq, pg_catalog.array_agg(searched.name) as names
    from searched
    cross join lateral (
      -- The open span is in the partition row, closed ones are rows of dedup_span.
      select searched.span_from as first_seq, searched.span_to as last_seq
      where searched.key between searched.span_low and searched.span_high
      union all
      select closed.first_seq, closed.last_seq
      from (
        select *
        from {schema}.dedup_span
        where dedup_span.partition = searched.partition and dedup_span.high >= searched.key
        order by dedup_span.high
        limit 1
      ) as closed
      where closed.low <= searched.key
    ) as span
    group by searched.partition, searched.since, span.first_seq, span.last_seq
  ), logged as materialized (
    select spans.partition, item.id, item.name
    from spans
    cross join lateral (
      select segment.ids, segment.transaction_ids
      from {schema}.segment
      where segment.partition = spans.partition
        and segment.last_seq between spans.first_seq and spans.last_seq
        -- A redriven message is a copy: its transaction id belongs to the first push.
        and segment.only_grp is null
        and segment.at > spans.since
        -- With more names than this, `&&` costs more than it saves.
        and (pg_catalog.cardinality(spans.names) > 8 or segment.transaction_ids && spans.names)
      offset 0
    ) as segment
    cross join lateral unnest(segment.ids, segment.transaction_ids) as item (id, name)
  )
  select distinct on (found.partition, found.key) found.partition, found.key, found.id
  from (
    select searched.partition, searched.key, logged.id
    from logged
    join searched on searched.partition = logged.partition and searched.name = logged.name
    union all
    -- A run of one key has no array: its only id is the first.
    select searched.partition, searched.key, run.ids[coalesce(pg_catalog.array_position(run.keys, searched.key), 1)]
    from searched
    cross join lateral (
      select dedup_run.keys, dedup_run.ids
      from {schema}.dedup_run
      where dedup_run.partition = searched.partition
        and dedup_run.high >= searched.key
        and dedup_run.high <= {schema}.dedup_reach(searched.key)
        and dedup_run.low <= searched.key
        and dedup_run.until > pg_catalog.clock_timestamp()
        and searched.key = any (coalesce(dedup_run.keys, array[dedup_run.high]))
      offset 0
    ) as run
  ) as found
  order by found.partition, found.key, found.id;
end
$reveille$;

comment on function {schema}.growing_seen(int[], uuid[]) is 'Reveille: which growing transaction ids were seen before';
