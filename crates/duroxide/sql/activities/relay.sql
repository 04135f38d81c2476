-- Remove the activity under token $1 and send its outcome, and take the next due one for the same
-- slot: `settle.sql` and then `claim_plain.sql` for one activity, in one commit. The slot waits for
-- the commit of the outcome anyway. Worth it: with the shelf, 30 statements for each orchestration
-- instead of 42, and a fifth more of them per second (decision 0013).
--
--   $1  token of the activity that is done
--   $2  instance that gets its outcome
--   $3  outcome; null for none
--   $4  token of the next activity
--   $5  for how many seconds it is taken
--   $6 $7 $8  its tags: those of $6, untagged ones too if $7, all if $8
--
-- Returns nothing if token $1 is not held or its lock has ended; otherwise one row, with the next
-- activity if there is one, and the events of its instance's latest execution, unless they are
-- many: the slot reads them first. Takes none and returns is_bound while an activity of a session
-- is due: then owners matter, and so does the order among both kinds.
--
-- Steps; a change to one of them belongs into the other file as well:
--   done, touched, added          as in settle.sql
--   clock, bound, picked, taken   as in claim_plain.sql, but only after done, for one activity, and
--                                 with the commit's own durability
--   past                          as in claim_plain.sql
-- locks:  the activity, its session, the next activity (skip locked)
-- plan:   index scan using activity_due
-- fences: the tokens
with done as (
  delete from {schema}.activity
  where lock_token = $1
    and due_at > clock_timestamp()
  returning session_id
), touched as (
  update {schema}.session s
  set last_activity_at = clock_timestamp()
  from done
  where s.session_id = done.session_id
    and s.locked_until > clock_timestamp()
), added as (
  insert into {schema}.message (instance_id, work_item, visible_at)
  select
    $2,
    $3,
    clock_timestamp()
  from done
  where $3::text is not null
), clock as materialized (
  select clock_timestamp() as now
), bound as materialized (
  -- In order, because PostgreSQL would otherwise read the table from its start and expect to find
  -- one soon.
  select
    (
      select true
      from {schema}.activity
      where session_id is not null
        and due_at <= (select now from clock)
      order by due_at
      limit 1
    ) is not null as is_due
), picked as materialized (
  select a.id
  from {schema}.activity a
  where a.due_at <= (select now from clock)
    and a.session_id is null
    and ($8 or case when a.tag is null then $7 else a.tag = any ($6) end)
    and not (select is_due from bound)
    and exists (select from done)
  order by a.due_at, a.id
  limit 1
  for no key update skip locked
), taken as (
  update {schema}.activity a
  set
    lock_token = $4,
    due_at = clock_timestamp() + make_interval(secs => $5),
    attempt_count = a.attempt_count + 1
  where a.id = any (array(select id from picked))
  returning a.lock_token, a.work_item, a.attempt_count, a.instance_id
)
select
  bound.is_due as is_bound,
  taken.lock_token,
  taken.work_item,
  taken.attempt_count,
  past.events
from done
cross join bound
left join taken on true
left join lateral (
  select
    array(
      select h.event
      from {schema}.history h
      where h.instance_id = latest.instance_id
        and h.execution_id = latest.execution_id
      order by h.event_id
    ) as events
  from (
    select
      instance_id,
      execution_id,
      event_count
    from {schema}.execution
    where instance_id = taken.instance_id
    order by execution_id desc
    limit 1
  ) as latest
  where latest.event_count <= 200
) as past on true
