-- A page of dead letters, the newest first: of queue $1, group $2 (a name), partition $3 (a name), dead since $4, before $5,
-- with the text $6 in error or transaction id (null for any of them); at most $7, after skipping $8. It ends before payloads
-- have more than $9 bytes together, unless the first alone has more: what it leaves out is never read.
-- locks:  nothing
with page as (
  select dead_letter.id, queue.name as queue, partition.name as partition, partition.uid as partition_uid,
         consumer_group.name as consumer, dead_letter.seq, dead_letter.message_id, dead_letter.transaction_id,
         dead_letter.trace_id, dead_letter.producer, dead_letter.key_id, dead_letter.payload, dead_letter.pushed_at,
         dead_letter.at, dead_letter.failures, dead_letter.deliveries, dead_letter.error
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
  order by dead_letter.id desc
  limit $7::bigint
  offset $8::bigint
), weighed as (
  select page.*, row_number() over newest as place, sum(octet_length(page.payload)) over newest as bytes
  from page
  window newest as (order by page.id desc rows unbounded preceding)
)
select weighed.id, weighed.queue, weighed.partition, weighed.partition_uid, weighed.consumer, weighed.seq, weighed.message_id,
       weighed.transaction_id, weighed.trace_id, weighed.producer, weighed.key_id, weighed.payload, weighed.pushed_at,
       weighed.at, weighed.failures, weighed.deliveries, weighed.error
from weighed
where weighed.place = 1 or weighed.bytes <= $9::bigint
order by weighed.id desc
