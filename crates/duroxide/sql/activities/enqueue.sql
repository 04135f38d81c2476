-- Add activity $6 of instance $1, execution $2, id $3, with session $4 and tag $5, due now.
-- locks:  the new row
insert into {schema}.activity (instance_id, execution_id, activity_id, session_id, tag, work_item, due_at)
values ($1, $2, $3, $4, $5, $6, clock_timestamp())
