-- Give back the space of what lies before the beginning of partitions above $1, at most $2 of them and $3 segments. Returns
-- the last partition looked at and how many segments went; nothing at the end. With all $3 gone there may be more.
-- locks:  segments nobody reads any more
with walked as materialized (
  select head.partition, head.first_seq
  from {schema}.head
  where head.partition > $1::int
  order by head.partition
  limit $2::bigint
), doomed as materialized (
  select walked.partition, old.last_seq
  from walked
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
  returning 1
)
select (select max(walked.partition) from walked) as last, (select count(*) from gone) as segments
where exists (select from walked)
