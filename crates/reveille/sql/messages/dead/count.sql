-- How many dead letters there are, by the same filters as messages/dead/list.sql: $1 to $6.
-- locks:  nothing
select count(*) as total
from {schema}.dead_letter
join {schema}.queue on queue.id = dead_letter.queue
join {schema}.partition on partition.id = dead_letter.partition
left join {schema}.consumer_group on consumer_group.id = dead_letter.grp
where ($1::text is null or queue.name = $1)
  and ($2::text is null or consumer_group.name = $2)
  and ($3::text is null or partition.name = $3)
  and ($4::timestamptz is null or dead_letter.at >= $4)
  and ($5::timestamptz is null or dead_letter.at < $5)
  and ($6::text is null or strpos(lower(dead_letter.error), lower($6)) > 0 or strpos(dead_letter.transaction_id, $6) > 0)
