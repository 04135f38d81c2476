-- Remove a little, about $1 rows of a kind, of what a deleted queue has left, in case whoever
-- deleted it did not come to the end; and the groups of deleted queues, and those that somebody
-- began to make an hour ago and nobody finished. Returns how many rows went; with 0 nothing is
-- left.
-- locks:  the heads of one queue, ascending; rows nobody uses any more
with doomed as materialized (
  select partition.queue
  from {schema}.partition
  where not exists (select from {schema}.queue where queue.id = partition.queue)
  order by partition.queue
  limit 1
), groups as (
  delete from {schema}.consumer_group
  where not exists (select from {schema}.queue where queue.id = coalesce(consumer_group.queue, consumer_group.begun_for))
     or (consumer_group.begun_for is not null and consumer_group.created_at < clock_timestamp() - interval '1 hour')
  returning 1
)
select coalesce((select {schema}.remove_leftovers(doomed.queue, $1::int) from doomed), 0) + (select count(*) from groups) as rows
