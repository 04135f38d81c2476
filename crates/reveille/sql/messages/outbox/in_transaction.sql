-- Push messages in a caller's transaction: queues $1, partitions $2, ids $3, payloads $4,
-- transaction ids $5, trace ids $6, producers $7, keys that the payloads are sealed with $8.
-- locks:  nothing that exists; a notification takes a lock on the whole database while the caller
--         commits
select {schema}.push_items($1::text[], $2::text[], $3::uuid[], $4::bytea[], $5::text[], $6::uuid[], $7::text[], $8::int[])
