-- Give back the space of what lies before the beginning of partitions above $1, at most $2 of them and $3 segments. Returns
-- the last partition looked at and how many segments went; nothing at the end. With all $3 gone there may be more.
-- Transaction ids that grow and whose window is not over move to dedup_run: those of a partition that were made within the same
-- 256 ms, which their first ten digits tell, and were pushed within the same second.
-- locks:  segments nobody reads any more
with walked as materialized (
  select head.partition, head.queue, head.first_seq
  from {schema}.head
  where head.partition > $1::int
  order by head.partition
  limit $2::bigint
), doomed as materialized (
  select walked.partition, old.last_seq, queue.dedup_window
  from walked
  join {schema}.queue on queue.id = walked.queue
  cross join lateral (
    select segment.last_seq
    from {schema}.segment
    where segment.partition = walked.partition and segment.last_seq < walked.first_seq
    order by segment.last_seq
    limit $3::bigint
  ) as old
  where walked.first_seq > 1
  limit $3::bigint
), gone as (
  delete from {schema}.segment
  using doomed
  where segment.partition = doomed.partition and segment.last_seq = doomed.last_seq
  returning segment.partition, segment.at, segment.at + doomed.dedup_window as until, segment.only_grp, segment.ids,
            segment.transaction_ids
), named as (
  select gone.partition, gone.until, date_trunc('second', gone.at) as second, item.id, item.name::uuid as key,
         left(item.name, 11) as digits
  from gone
  cross join lateral unnest(gone.ids, gone.transaction_ids) as item (id, name)
  where gone.until > clock_timestamp()
    and gone.only_grp is null
    and item.name ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$'
), counted as (
  select named.*,
         row_number() over (partition by named.partition, named.digits, named.second order by named.key) / 240 as page
  from named
), run as (
  select counted.partition, array_agg(counted.key order by counted.key) as keys,
         array_agg(counted.id order by counted.key) as ids, max(counted.until) as until
  from counted
  group by counted.partition, counted.digits, counted.second, counted.page
), kept as (
  insert into {schema}.dedup_run (partition, low, high, keys, ids, until)
  select run.partition, run.keys[1], run.keys[cardinality(run.keys)], case when cardinality(run.keys) > 1 then run.keys end, run.ids,
         run.until
  from run
)
select (select max(walked.partition) from walked) as last, (select count(*) from gone) as segments
where exists (select from walked)
