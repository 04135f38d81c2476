-- How large instance $1 is: the events of its execution, its values, and its first event.
-- locks:  nothing
with current as (
  select
    instance_id,
    current_execution_id as execution_id
  from {schema}.instance
  where instance_id = $1
), merged as (
  select coalesce(d.key, s.key) as key, case when d.key is null then s.value else d.value end as value
  from (select key, value from {schema}.kv_store where instance_id = $1) as s
  full join (select key, value from {schema}.kv_delta where instance_id = $1) as d on d.key = s.key
)
select
  (select count(*) from {schema}.history h where h.instance_id = c.instance_id and h.execution_id = c.execution_id)
    as events,
  (
    select coalesce(sum(octet_length(event)), 0)::bigint
    from {schema}.history h
    where h.instance_id = c.instance_id and h.execution_id = c.execution_id
  ) as event_bytes,
  (
    select event
    from {schema}.history h
    where h.instance_id = c.instance_id and h.execution_id = c.execution_id and h.event_id = 1
  ) as first_event,
  (select count(*) from merged where value is not null) as keys,
  (select coalesce(sum(octet_length(value)), 0)::bigint from merged) as value_bytes
from current c
