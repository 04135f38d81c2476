-- The state of the message $2 of the partition $1 for each group.
-- locks:  nothing
select consumer_group.name as consumer,
       case
         when letter.id is not null then 'dead'
         when cursor.committed >= $2::bigint then 'completed'
         when cursor.lease_until > clock_timestamp() and $2::bigint <= cursor.leased_through then 'leased'
         else 'pending'
       end as state,
       cursor.lease_until,
       case when letter.id is not null then letter.failures when cursor.committed + 1 = $2::bigint then cursor.failures else 0 end
         as failures,
       letter.error
from {schema}.partition_row
join {schema}.consumer_group on consumer_group.queue = partition_row.queue
left join {schema}.cursor on cursor.partition = partition_row.partition and cursor.grp = consumer_group.id
left join lateral (
  select dead_letter.id, dead_letter.failures, dead_letter.error
  from {schema}.dead_letter
  where dead_letter.partition = partition_row.partition and dead_letter.seq = $2::bigint and dead_letter.grp = consumer_group.id
  order by dead_letter.id desc
  limit 1
) as letter on true
where partition_row.partition = $1::int
order by consumer_group.name
