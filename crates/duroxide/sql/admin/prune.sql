-- Remove executions of instance $1 with their events: all but the last $2 (if given), ended before
-- $3 (ms since 1970, if given); never the current one, never one that runs. Returns nothing if
-- there is no such instance.
-- locks:  the executions and events that go
with current as materialized (
  select
    instance_id,
    current_execution_id
  from {schema}.instance
  where instance_id = $1
), old as materialized (
  select e.execution_id
  from {schema}.execution e
  join current c on c.instance_id = e.instance_id
  where e.execution_id <> c.current_execution_id
    and e.status <> 'Running'
    and ($3::bigint is null or e.completed_at < to_timestamp($3 / 1000.0))
    and (
      $2::bigint is null
      or e.execution_id not in (
        select execution_id from {schema}.execution where instance_id = $1 order by execution_id desc limit $2
      )
    )
), executions as (
  delete from {schema}.execution e using old where e.instance_id = $1 and e.execution_id = old.execution_id returning 1
), events as (
  delete from {schema}.history h using old where h.instance_id = $1 and h.execution_id = old.execution_id returning 1
)
select
  (select count(*) from executions) as executions,
  (select count(*) from events) as events
from current
