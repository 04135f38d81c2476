-- Forget every message of the queue $1, whether or not somebody has it: nothing pushed so far is
-- delivered again. Returns how many messages that were.
-- locks:  the heads, ascending; the outbox rows of that name
with held as materialized (
  select head.partition
  from {schema}.head
  join {schema}.queue on queue.id = head.queue
  where queue.name = $1::text
  order by head.partition
  for update of head
), gone as (
  -- After the heads, as whoever moves them does.
  delete from {schema}.outbox
  where outbox.queue = $1::text and (select count(*) from held) >= 0
  returning 1
), emptied as (
  update {schema}.head
  set first_seq = head.next_seq
  from held, {schema}.head as before
  where head.partition = held.partition and before.partition = held.partition and head.first_seq < head.next_seq
  returning head.next_seq - before.first_seq as n
)
select (select count(*) from gone) + (select coalesce(sum(n), 0) from emptied)::bigint as purged
