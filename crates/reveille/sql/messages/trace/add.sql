-- Add a trace of the message $2 of partition $1: by the group $3, of type $4, with the names $5 and
-- the body $6.
-- locks:  nothing
insert into {schema}.trace (partition, transaction_id, consumer_group, event_type, names, body)
select partition.id, $2::text, $3::text, $4::text, $5::text[], $6::bytea
from {schema}.partition
where partition.id = $1::int
returning trace.id
