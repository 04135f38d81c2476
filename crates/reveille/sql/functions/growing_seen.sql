-- Which of these growing keys were pushed to these partitions (parallel arrays, partitions repeated) within their window, and by
-- which message. They are looked for in the log, in the stretches whose keys they fall among, and among the keys of segments that
-- went early. Whoever calls holds the heads; being volatile, this sees what was committed before they were taken, which the calling
-- statement may have begun too early to see. One statement: a sweep that moves keys from the log to the runs is seen whole.
-- locks: nothing
create or replace function {schema}.growing_seen(in_partitions int[], in_keys uuid[])
returns table (partition int, key uuid, id uuid)
language plpgsql
volatile
as $reveille$
#variable_conflict use_column
begin
  return query
  with asked as materialized (
    select given.partition, given.key, given.key::text as name
    from unnest(in_partitions, in_keys) as given (partition, key)
  ), bounded as materialized (
    select held.partition, held.keys[1] as low, held.keys[cardinality(held.keys)] as high,
           clock_timestamp() - queue.dedup_window as since, head.next_seq, head.span_from, head.span_low, head.span_high
    from (
      select asked.partition, array_agg(asked.key order by asked.key) as keys
      from asked
      group by asked.partition
    ) as held
    cross join lateral (
      -- From the newest version back, as head_of.
      select *
      from {schema}.head
      where head.partition <= held.partition
        and (head.partition, head.queue) >= (held.partition, 0)
      order by head.partition desc
      limit 1
    ) as head
    join {schema}.queue on queue.id = head.queue
    where head.partition = held.partition
  ), stretch as (
    select bounded.partition, bounded.since, span.first_seq, span.last_seq
    from bounded
    join {schema}.dedup_span as span
      on span.partition = bounded.partition and span.high >= bounded.low and span.low <= bounded.high
    -- Of two keys that lie far apart, what lies between them holds neither.
    where exists (select from asked where asked.partition = span.partition and asked.key between span.low and span.high)
    union all
    select bounded.partition, bounded.since, bounded.span_from, bounded.next_seq - 1
    from bounded
    where bounded.span_high >= bounded.low and bounded.span_low <= bounded.high
  ), logged as materialized (
    select segment.partition, item.id, item.name
    from stretch
    join {schema}.segment
      on segment.partition = stretch.partition
      and segment.last_seq between stretch.first_seq and stretch.last_seq
      -- What was redriven was pushed before.
      and segment.only_grp is null
      and segment.at > stretch.since
    cross join lateral unnest(segment.ids, segment.transaction_ids) as item (id, name)
  ), kept as materialized (
    select bounded.partition, item.id, item.key
    from bounded
    join {schema}.dedup_run as run
      on run.partition = bounded.partition
      and run.high >= bounded.low
      and run.high <= {schema}.dedup_reach(bounded.high)
      and run.low <= bounded.high
      and run.until > clock_timestamp()
    cross join lateral unnest(coalesce(run.keys, array[run.high]), run.ids) as item (key, id)
  )
  select asked.partition, asked.key, logged.id
  from logged
  join asked on asked.partition = logged.partition and asked.name = logged.name
  union all
  select asked.partition, asked.key, kept.id
  from kept
  join asked on asked.partition = kept.partition and asked.key = kept.key;
end
$reveille$;

comment on function {schema}.growing_seen(int[], uuid[]) is 'Reveille: which growing transaction ids were seen before';
