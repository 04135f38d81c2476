-- Claim up to $2 due activities for $3 seconds, one token of $1 each.
--
--   $4 $5     the owner, and for how many seconds it holds the sessions of what it takes: its own
--             ones and those without an owner. If null, activities of sessions are left alone
--   $6 $7 $8  tags: those of $6, untagged ones too if $7, all if $8
--
-- One row for each activity, or one row without; every row has how many were picked, whether some
-- were left because another transaction has them locked, and when the next claim is due.
-- A claim need not survive a crash, so it does not wait for the disk.
--
-- Steps, with the table that each writes:
--   picked    locks due activities
--   kept      session: those of the picked activities that the owner has or gets
--   chosen    gives a token to each picked activity of no session or of a kept one
--   taken     activity: gets its token and the end of its lock
--   skipped   whether an activity was left that could have been picked
--   next      when the next claim is due
-- locks:  the activities that are picked (skip locked), then their sessions in the order of their
--         names
-- plan:   index scan using activity_due
-- fences: the token, which every later statement on the activity must present
with clock as materialized (
  select clock_timestamp() as now
  where set_config('synchronous_commit', 'off', true) is not null
), picked as materialized (
  select
    a.id,
    a.session_id
  from {schema}.activity a
  left join {schema}.session s on s.session_id = a.session_id
  where a.due_at <= (select now from clock)
    and ($8 or case when a.tag is null then $7 else a.tag = any ($6) end)
    and (
      a.session_id is null
      or (
        $4::text is not null
        and (s.session_id is null or s.owner_id = $4 or s.locked_until <= (select now from clock))
      )
    )
  order by a.due_at, a.id
  limit $2
  for no key update of a skip locked
), kept as (
  insert into {schema}.session as s (session_id, owner_id, locked_until, last_activity_at)
  select distinct
    picked.session_id,
    $4,
    clock.now + make_interval(secs => $5),
    clock.now
  from picked
  cross join clock
  where picked.session_id is not null
  order by 1
  on conflict (session_id) do update
  set
    owner_id = excluded.owner_id,
    locked_until = excluded.locked_until,
    last_activity_at = excluded.last_activity_at
  where s.owner_id = excluded.owner_id
     or s.locked_until <= excluded.last_activity_at
  returning s.session_id
), chosen as (
  select
    id,
    ($1::text[])[row_number() over (order by id)] as token
  from picked
  where session_id is null
     or session_id in (select session_id from kept)
), taken as (
  -- An array, because the planner then expects few rows; it would hash a join with the rows of an
  -- unknown limit.
  update {schema}.activity a
  set
    lock_token = (select token from chosen where chosen.id = a.id),
    due_at = clock_timestamp() + make_interval(secs => $3),
    attempt_count = a.attempt_count + 1
  where a.id = any (array(select id from chosen))
  returning a.id, a.lock_token, a.work_item, a.attempt_count
), skipped as (
  select
    case
      when (select count(*) from picked) < $2 then (
        select true
        from {schema}.activity a
        left join {schema}.session s on s.session_id = a.session_id
        where a.due_at <= (select now from clock)
          and ($8 or case when a.tag is null then $7 else a.tag = any ($6) end)
          and (
            a.session_id is null
            or (
              $4::text is not null
              and (s.session_id is null or s.owner_id = $4 or s.locked_until <= (select now from clock))
            )
          )
          and a.id not in (select id from picked)
        order by a.due_at, a.id
        limit 1
      ) is not null
      else false
    end as contended
), next as (
  select least(
    (select min(due_at) from {schema}.activity where due_at > (select now from clock)),
    (
      select min(s.locked_until)
      from {schema}.activity a
      join {schema}.session s on s.session_id = a.session_id
      where a.due_at <= (select now from clock)
        and s.locked_until > (select now from clock)
        and s.owner_id is distinct from $4
    ),
    (select now + make_interval(secs => $3) from clock where exists (select from taken))
  ) as at
)
select
  (select count(*) from picked) as picked,
  (select contended from skipped) as contended,
  extract(epoch from next.at - clock_timestamp())::float8 as due_s,
  taken.lock_token,
  taken.work_item,
  taken.attempt_count
from next
left join taken on true
order by taken.id
