-- What the turns of instances $2 under tokens $1 need beside their messages: the instance, the
-- history of its execution, its values; as parts 1, 3 and 4 of `claim.sql`, whose header has the
-- table. For turns whose claim saw the store as it was before their previous turn ended.
-- locks:  nothing
with turn as materialized (
  select
    b.lock_token,
    b.instance_id,
    i.name,
    i.version,
    coalesce(i.current_execution_id, 1) as execution_id
  from {schema}.mailbox b
  left join {schema}.instance i on i.instance_id = b.instance_id
  where b.instance_id = any ($2)
    and b.lock_token = any ($1)
)
select
  1 as part,
  t.lock_token,
  t.execution_id as number,
  t.name as content,
  t.version as detail
from turn t
union all
select
  3,
  t.lock_token,
  h.event_id,
  h.event,
  null
from turn t
join {schema}.history h on h.instance_id = t.instance_id and h.execution_id = t.execution_id
union all
select
  4,
  t.lock_token,
  k.updated_ms,
  k.key,
  k.value
from turn t
join {schema}.kv_store k on k.instance_id = t.instance_id
order by 1, 3
