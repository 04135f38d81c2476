-- Delete segments before the beginning of partitions above $1, in at most $2 partitions, at most $3
-- segments and about 20,000 messages. Returns the last partition read, how many segments were
-- deleted, and whether there are more; nothing at the end. Transaction ids that grow and whose
-- window is not over move to dedup_run. Segments of deleted queues are removed by leftovers.sql.
-- locks:  segments that are not read any more
with walked as materialized (
  select partition_row.partition, partition_row.queue, partition_row.first_seq
  from {schema}.partition_row
  where partition_row.partition > $1::int
  order by partition_row.partition
  limit $2::bigint
), old as materialized (
  select found.*, sum(found.n) over (order by found.partition, found.last_seq) as messages
  from (
    select walked.partition, queue.dedup_window, segment.last_seq, segment.n
    from walked
    join {schema}.queue on queue.id = walked.queue
    cross join lateral (
      select segment.last_seq, segment.n
      from {schema}.segment
      where segment.partition = walked.partition and segment.last_seq < walked.first_seq
      order by segment.last_seq
      limit $3::bigint
    ) as segment
    where walked.first_seq > 1
    limit $3::bigint
  ) as found
), doomed as materialized (
  select old.partition, old.last_seq, old.dedup_window
  from old
  where old.messages - old.n < 20000
), gone as (
  delete from {schema}.segment
  using doomed
  where segment.partition = doomed.partition and segment.last_seq = doomed.last_seq
  returning segment.partition, segment.at + doomed.dedup_window as until, segment.only_grp, segment.ids, segment.transaction_ids
), named as (
  select gone.partition, gone.until, item.id, item.name::uuid as key
  from gone
  cross join lateral unnest(gone.ids, gone.transaction_ids) as item (id, name)
  where gone.until > clock_timestamp()
    and gone.only_grp is null
    and item.name like '________-____-7___-____-____________'
    and translate(item.name, '0123456789abcdef', '') = '----'
), noted as materialized (
  select {schema}.note_keys(array_agg(named.partition), array_agg(named.key), array_agg(named.id), array_agg(named.until)) as rows
  from named
)
select (select max(walked.partition) from walked) as last, (select count(*) from gone) as segments,
       (select count(*) from old) >= least($3::bigint, 1 + (select count(*) from gone)) as more,
       (select noted.rows from noted) as runs
where exists (select from walked)
