-- How many messages wait for the group $2 in queue $1, to be claimed now or later, and how many of
-- them are leased. For a group that does not exist yet, all that are kept.
-- locks:  nothing
select coalesce(sum(place.waiting), 0)::bigint as waiting, coalesce(sum(place.leased), 0)::bigint as leased
from (
  select greatest(partition_row.next_seq - 1 - greatest(coalesce(cursor.committed, 0), partition_row.first_seq - 1), 0) as waiting,
         case when cursor.lease_until > clock_timestamp()
           then greatest(cursor.leased_through - greatest(cursor.committed, partition_row.first_seq - 1), 0)
         end as leased
  from {schema}.queue
  join {schema}.partition_row on partition_row.queue = queue.id
  left join {schema}.consumer_group on consumer_group.queue = queue.id and consumer_group.name = $2::text
  left join lateral (
    select cursor.committed, cursor.lease_until, cursor.leased_through
    from {schema}.cursor
    where cursor.partition = partition_row.partition and cursor.grp = consumer_group.id
    limit 1
  ) as cursor on true
  where queue.name = $1::text
) as place
