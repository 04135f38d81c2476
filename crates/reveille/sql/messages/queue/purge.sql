-- Delete every message of the queue $1, leased or not: no message pushed so far is delivered again.
-- Returns how many messages these were.
-- locks:  the partition rows, ascending; the outbox rows of that name
with held as materialized (
  select partition_row.partition
  from {schema}.partition_row
  join {schema}.queue on queue.id = partition_row.queue
  where queue.name = $1::text
  order by partition_row.partition
  for update of partition_row
), gone as (
  -- After the partition rows, in the order of the statements that move the outbox.
  delete from {schema}.outbox
  where outbox.queue = $1::text and (select count(*) from held) >= 0
  returning 1
), emptied as (
  update {schema}.partition_row
  set first_seq = partition_row.next_seq
  from held, {schema}.partition_row as before
  where partition_row.partition = held.partition and before.partition = held.partition and partition_row.first_seq < partition_row.next_seq
  returning partition_row.next_seq - before.first_seq as n
)
select (select count(*) from gone) + (select coalesce(sum(n), 0) from emptied)::bigint as purged
