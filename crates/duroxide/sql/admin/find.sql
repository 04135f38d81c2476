-- Up to $3 instances among $1 (all, if null) whose execution ended before $2 (ms since 1970, if
-- given); with $4 only ended ones without a parent.
-- locks:  nothing
select i.instance_id
from {schema}.instance i
left join {schema}.execution e on e.instance_id = i.instance_id and e.execution_id = i.current_execution_id
where ($1::text[] is null or i.instance_id = any ($1))
  and ($2::bigint is null or e.completed_at < to_timestamp($2 / 1000.0))
  and (not $4 or (i.parent_instance_id is null and e.status in ('Completed', 'Failed', 'ContinuedAsNew')))
order by i.created_at, i.instance_id
limit $3
