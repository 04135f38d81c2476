-- Claim up to $2 instances with visible messages for $3 seconds, one token of $1 each; pinned
-- versions from $4 to $5 only.
--
-- Returns rows of five parts, in order, with these columns; all others are null:
--
--   part         lock_token  number          content          detail   and
--   0 summary                picked                                    contended, due_s
--   1 turn       yes         its execution   name             version  instance_id, is_current
--   2 message    yes         id              the work item             attempt_count
--   3 event      yes         id              the event
--   4 value      yes         when set, ms    key              value
--
--   picked        how many messages were picked; those of one instance make one turn, and those
--                 that a turn has deleted meanwhile make none
--   contended     whether an instance was left because another transaction has it locked
--   due_s         seconds until the next claim is due
--   name          of the instance; null before its first turn is committed
--   is_current    whether parts 3 and 4 of the turn are here
--
-- The statement sees what was committed before it began, and a turn may have ended since: then the
-- token of the last turn in the mailbox, which is read again under its lock, is not that in the
-- instance. Such a turn is not current, and `content.sql` must read its content.
--
-- Mailboxes are looked up one by one, also on a store so young that it has no statistics: there are
-- as many as there ever were instances. A claim need not survive a crash, so it does not wait for
-- the disk.
--
-- Steps:
--   picked    locks the mailboxes of the first messages that are visible, one row for each message
--   chosen    gives each instance a token
--   tagged    message: all visible ones of these instances get the token
--   locked    mailbox: gets the token and the end of its lock
--   turn      the instances of these mailboxes
--   skipped   whether a message was left that could have been picked
--   next      when the next claim is due
-- locks:  the mailboxes that are picked (skip locked) and their messages
-- plan:   index scan using message_due
-- fences: the token, which every later statement on the turn must present
with clock as materialized (
  select clock_timestamp() as now
  where set_config('synchronous_commit', 'off', true) is not null
), picked as materialized (
  select
    b.instance_id,
    m.id
  from (
    select
      id,
      instance_id
    from {schema}.message
    where visible_at <= (select now from clock)
    order by visible_at, id
  ) as m
  cross join lateral (
    select mailbox.instance_id
    from {schema}.mailbox
    where mailbox.instance_id = m.instance_id
      and known
      and (locked_until is null or locked_until <= (select now from clock))
      and ($4::bigint is null or pinned is null or pinned between $4 and $5)
    for no key update skip locked
  ) as b
  limit $2
), chosen as (
  select
    instance_id,
    ($1::text[])[row_number() over (order by min(id))] as token
  from picked
  group by instance_id
), tagged as (
  update {schema}.message m
  set
    lock_token = chosen.token,
    attempt_count = m.attempt_count + 1
  from chosen
  where m.instance_id = any (array(select instance_id from chosen))
    and m.instance_id = chosen.instance_id
    and m.visible_at <= (select now from clock)
  returning m.id, m.instance_id, m.lock_token, m.work_item, m.attempt_count
), locked as (
  update {schema}.mailbox b
  set
    lock_token = turn.lock_token,
    locked_until = clock_timestamp() + make_interval(secs => $3)
  from (select distinct instance_id, lock_token from tagged) as turn
  where b.instance_id = any (array(select instance_id from chosen))
    and b.instance_id = turn.instance_id
  returning b.instance_id, b.lock_token, b.settled_token
), turn as materialized (
  select
    locked.instance_id,
    locked.lock_token,
    i.name,
    i.version,
    coalesce(i.current_execution_id, 1) as execution_id,
    locked.settled_token is not distinct from i.settled_token as is_current
  from locked
  left join lateral (
    select * from {schema}.instance where instance.instance_id = locked.instance_id offset 0
  ) as i on true
), skipped as (
  select
    case
      when (select count(*) from picked) < $2 then (
        select true
        from {schema}.message m
        cross join lateral (
          select
          from {schema}.mailbox
          where mailbox.instance_id = m.instance_id
            and known
            and (locked_until is null or locked_until <= (select now from clock))
            and ($4::bigint is null or pinned is null or pinned between $4 and $5)
          offset 0
        ) as b
        where m.visible_at <= (select now from clock)
          and m.instance_id not in (select instance_id from picked)
        order by m.visible_at, m.id
        limit 1
      ) is not null
      else false
    end as contended
), next as (
  select least(
    (select min(visible_at) from {schema}.message where visible_at > (select now from clock)),
    case
      when (select count(*) from picked) < $2 then (
        select
          min((
            select b.locked_until
            from {schema}.mailbox b
            where b.instance_id = m.instance_id
              and b.locked_until > (select now from clock)
          ))
        from {schema}.message m
        where m.visible_at <= (select now from clock)
      )
    end,
    (select now + make_interval(secs => $3) from clock where exists (select from tagged))
  ) as at
)
select
  0 as part,
  null::text as lock_token,
  (select count(*) from picked) as number,
  null::text as content,
  null::text as detail,
  (select contended from skipped) as contended,
  extract(epoch from next.at - clock_timestamp())::float8 as due_s,
  null::text as instance_id,
  null::boolean as is_current,
  null::integer as attempt_count
from next
union all
select 1, lock_token, execution_id, name, version, null, null, instance_id, is_current, null
from turn
union all
select 2, lock_token, id, work_item, null, null, null, null, null, attempt_count
from tagged
union all
select 3, t.lock_token, h.event_id, h.event, null, null, null, null, null, null
from turn t
cross join lateral (
  select event_id, event
  from {schema}.history
  where history.instance_id = t.instance_id
    and history.execution_id = t.execution_id
  offset 0
) as h
where t.is_current
union all
select 4, t.lock_token, k.updated_ms, k.key, k.value, null, null, null, null, null
from turn t
cross join lateral (
  select updated_ms, key, value from {schema}.kv_store where kv_store.instance_id = t.instance_id offset 0
) as k
where t.is_current
order by 1, 3
