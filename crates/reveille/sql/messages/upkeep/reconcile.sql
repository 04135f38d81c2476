-- Find stranded messages in partitions above $1, at most $2 of them, and mark them ready: messages
-- that wait for a group whose cursor is not due, in a partition without new_since. There should be
-- none. Returns a row for each repair, and a last row without group, with the last partition read;
-- nothing if no partition was read.
-- locks:  the cursors, skipping locked ones
with walked as materialized (
  select partition_row.partition, partition_row.queue, partition_row.next_seq - 1 as newest, partition_row.new_since
  from {schema}.partition_row
  where partition_row.partition > $1::int
  order by partition_row.partition
  limit $2::bigint
), known as (
  -- A group that is registering catches up in a second step.
  select walked.partition, walked.queue, walked.newest, consumer_group.id as grp
  from walked
  join {schema}.consumer_group on consumer_group.queue = walked.queue
  where walked.new_since is null
    and walked.newest > 0
    and (consumer_group.settled or consumer_group.created_at < clock_timestamp() - interval '1 minute')
), broken as materialized (
  select known.partition, known.queue, known.newest, known.grp
  from known
  join {schema}.cursor on cursor.partition = known.partition and cursor.grp = known.grp
  where cursor.due_at is null and cursor.committed < known.newest
  order by cursor.partition, cursor.grp
  for update of cursor skip locked
), repaired as (
  update {schema}.cursor
  set due_at = clock_timestamp(), upto = greatest(cursor.upto, broken.newest)
  from broken
  where cursor.partition = broken.partition and cursor.grp = broken.grp and cursor.due_at is null
  returning broken.queue, cursor.partition, cursor.grp
), made as (
  insert into {schema}.cursor (partition, grp, upto, due_at)
  select known.partition, known.grp, known.newest, clock_timestamp()
  from known
  where not exists (
    select from {schema}.cursor where cursor.partition = known.partition and cursor.grp = known.grp
  )
  order by known.partition, known.grp
  on conflict do nothing
  returning cursor.partition, cursor.grp
)
select repaired.queue, repaired.partition, repaired.grp
from repaired
union all
select walked.queue, made.partition, made.grp
from made
join walked on walked.partition = made.partition
union all
select null, max(walked.partition), null
from walked
having count(*) > 0
