-- Move the beginning of partitions above $1, at most $2 of them, past messages that their queue
-- need not keep: those older than its retention or ttl; those that every group has settled and that
-- are older than its completed retention; and, if some group is that far behind, those that have
-- waited longer than its longest wait. Returns the last partition read, how many were moved, and by
-- how many messages; nothing at the end. Busy partitions are left for the next run.
-- locks:  the partition rows, ascending, skipping locked ones
with walked as materialized (
  select partition_row.partition, partition_row.queue, partition_row.first_seq, partition_row.next_seq
  from {schema}.partition_row
  where partition_row.partition > $1::int
  order by partition_row.partition
  limit $2::bigint
), ruled as (
  select walked.*, queue.retention, queue.completed_retention, queue.max_wait, queue.ttl,
         case when queue.completed_retention > '0' or queue.max_wait > '0' then coalesce((
           select min(coalesce(cursor.committed, 0))
           from {schema}.consumer_group
           left join {schema}.cursor on cursor.partition = walked.partition and cursor.grp = consumer_group.id
           where consumer_group.queue = walked.queue
         ), 0) end as settled
  from walked
  join {schema}.queue on queue.id = walked.queue
  where walked.next_seq > walked.first_seq
    and greatest(queue.retention, queue.completed_retention, queue.max_wait, queue.ttl) > '0'
), cut as (
  select ruled.partition,
         1 + greatest(
           ruled.first_seq - 1,
           case when ruled.retention > '0'
             then {schema}.seq_at(ruled.partition, ruled.first_seq - 1, ruled.next_seq - 1, clock_timestamp() - ruled.retention)
           end,
           case when ruled.ttl > '0'
             then {schema}.seq_at(ruled.partition, ruled.first_seq - 1, ruled.next_seq - 1, clock_timestamp() - ruled.ttl)
           end,
           case when ruled.completed_retention > '0' and ruled.settled >= ruled.first_seq
             then {schema}.seq_at(ruled.partition, ruled.first_seq - 1, least(ruled.settled, ruled.next_seq - 1),
                                  clock_timestamp() - ruled.completed_retention)
           end,
           case when ruled.max_wait > '0' then (
             select case when old.seq > ruled.settled then old.seq end
             from (
               select {schema}.seq_at(ruled.partition, ruled.first_seq - 1, ruled.next_seq - 1,
                                      clock_timestamp() - ruled.max_wait) as seq
             ) as old
           ) end
         ) as first_seq
  from ruled
), locked as materialized (
  select partition_row.partition, cut.first_seq, cut.first_seq - partition_row.first_seq as messages
  from cut
  join {schema}.partition_row on partition_row.partition = cut.partition
  where cut.first_seq > partition_row.first_seq
  order by partition_row.partition
  for update of partition_row skip locked
), moved as (
  update {schema}.partition_row
  set first_seq = locked.first_seq
  from locked
  where partition_row.partition = locked.partition
  returning locked.messages
)
select (select max(walked.partition) from walked) as last, (select count(*) from moved) as partitions,
       (select coalesce(sum(moved.messages), 0)::bigint from moved) as messages
where exists (select from walked)
