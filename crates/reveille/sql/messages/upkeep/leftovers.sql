-- Remove about $1 rows of each table of a deleted queue, in case the process that deleted it
-- stopped early; also the groups of deleted queues, and groups that were begun an hour ago and not
-- finished. Returns how many rows were removed; 0 when none is left.
-- locks:  the partition rows of one queue, ascending; rows that are not used any more
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
