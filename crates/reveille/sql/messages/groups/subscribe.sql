-- Change where the groups named $1 began to the time $2.
-- locks:  the groups' rows
update {schema}.consumer_group
set mode = 'from', from_at = $2::timestamptz
where consumer_group.name = $1::text
