-- Claim up to $2 due activities that are of no session for $3 seconds, one token of $1 each, for
-- any owner. Tags: those of $4, untagged ones too if $5, all if $6. Takes nothing and returns
-- is_bound while an activity of a session is due: then owners matter, and so does the order among
-- both kinds. One row for each activity, or one row without; every row has how many were picked,
-- whether some were left because another transaction has them locked, and when the next claim is
-- due. With each activity come the events of its instance's latest execution, unless they are many:
-- the slot reads them first. A claim need not survive a crash, so it does not wait for the disk.
-- `relay.sql` has the same steps.
-- locks:  the activities that are picked (skip locked)
-- plan:   index scan using activity_due
-- fences: the token, which every later statement on the activity must present
with clock as materialized (
  select clock_timestamp() as now
  where set_config('synchronous_commit', 'off', true) is not null
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
    and ($6 or case when a.tag is null then $5 else a.tag = any ($4) end)
    and not (select is_due from bound)
  order by a.due_at, a.id
  limit $2
  for no key update skip locked
), chosen as (
  select
    id,
    ($1::text[])[row_number() over (order by id)] as token
  from picked
), taken as (
  update {schema}.activity a
  set
    lock_token = chosen.token,
    due_at = clock_timestamp() + make_interval(secs => $3),
    attempt_count = a.attempt_count + 1
  from chosen
  where a.id = any (array(select id from chosen))
    and a.id = chosen.id
  returning a.id, a.lock_token, a.work_item, a.attempt_count, a.instance_id
), skipped as (
  select
    case
      when (select count(*) from picked) < $2 then (
        select true
        from {schema}.activity a
        where a.due_at <= (select now from clock)
          and a.session_id is null
          and ($6 or case when a.tag is null then $5 else a.tag = any ($4) end)
          and a.id not in (select id from picked)
        order by a.due_at, a.id
        limit 1
      ) is not null
      else false
    end as contended
), next as (
  select least(
    (select min(due_at) from {schema}.activity where due_at > (select now from clock)),
    (select now + make_interval(secs => $3) from clock where exists (select from taken))
  ) as at
)
select
  (select count(*) from picked) as picked,
  (select is_due from bound) as is_bound,
  (select contended from skipped) as contended,
  extract(epoch from next.at - clock_timestamp())::float8 as due_s,
  taken.lock_token,
  taken.work_item,
  taken.attempt_count,
  past.events
from next
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
order by taken.id
