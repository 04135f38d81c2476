-- Append events $4 with ids $3 to execution $2 of instance $1. An id that is there already refuses
-- them all.
-- locks:  the new rows
insert into {schema}.history (instance_id, execution_id, event_id, event)
select
  $1,
  $2,
  new.event_id,
  new.event
from unnest($3::bigint[], $4::text[]) as new (event_id, event)
