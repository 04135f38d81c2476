-- The keys $2 of the partitions $1 (parallel arrays, partitions repeated) that were seen within
-- their window, and the first message of each. Run it after messages/push/lock.sql in the same
-- transaction: then the answer stays true until the end. Version 7, the keys that grow, is the 15th
-- letter of the key's text.
-- locks:  nothing
select seen.partition, seen.key, seen.id
from unnest($1::int[], $2::uuid[]) as asked (partition, key)
join {schema}.dedup as seen on seen.partition = asked.partition and seen.key = asked.key
where seen.until > clock_timestamp()
union all
select seen.partition, seen.key, seen.id
from {schema}.growing_seen(
  array(
    select asked.partition
    from unnest($1::int[], $2::uuid[]) as asked (partition, key)
    where substr(asked.key::text, 15, 1) = '7'
  ),
  array(select asked.key from unnest($2::uuid[]) as asked (key) where substr(asked.key::text, 15, 1) = '7')
) as seen
