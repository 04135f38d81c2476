-- The messages $2 of the partitions $1 (parallel arrays, partitions repeated) that are in the log,
-- because a flush whose answer was lost took effect, and their positions. Reads as far back as a
-- retry can be late. Run it after messages/push/lock.sql in the same transaction: a flush that is
-- still under way holds the partition rows.
-- locks:  nothing
select asked.id, held.last_seq - held.n + held.place as seq
from (select distinct unnest($1::int[]) as partition) as flushed
join {schema}.partition_row on partition_row.partition = flushed.partition
cross join lateral (
  select segment.last_seq, segment.n, item.id, item.place
  from {schema}.segment
  cross join lateral unnest(segment.ids) with ordinality as item (id, place)
  where segment.partition = partition_row.partition and segment.last_seq > partition_row.next_seq - 1 - 100000
) as held
join unnest($2::uuid[]) as asked (id) on asked.id = held.id
