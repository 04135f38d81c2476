-- Store a flush in the outbox while pushes are paused: queues $1, partitions $2, ids $3,
-- transaction ids $4 (null for none), payloads $5, trace ids $6, producers $7, the key that the
-- payloads are sealed with $8. $9: some messages may be there already.
-- locks:  nothing that exists
insert into {schema}.outbox (queue, partition, message_id, transaction_id, payload, trace_id, producer, key_id)
select item.queue, item.partition, item.id, item.transaction_id, item.payload, item.trace_id, item.producer, $8::int
from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::bytea[], $6::uuid[], $7::text[]) with ordinality
  as item (queue, partition, id, transaction_id, payload, trace_id, producer, place)
where not ($9::boolean and exists (
  select from {schema}.outbox as kept where kept.queue = item.queue and kept.message_id = item.id
))
order by item.place
