-- Claim up to $2 instances with visible messages for $3 seconds, one token of $1 each; pinned versions from $4 to $5 only.
-- One row for each tagged message, or one row without; every row says how much was picked and when the next look is due.
-- locks:  the mailboxes that are picked (skip locked) and their messages
-- plan:   index scan using message_due
-- fences: the token, which every later statement on the turn must present
with clock as materialized (
  select clock_timestamp() as now
), picked as materialized (
  select
    b.instance_id,
    m.id
  from {schema}.message m
  join {schema}.mailbox b on b.instance_id = m.instance_id
  where m.visible_at <= (select now from clock)
    and b.known
    and (b.locked_until is null or b.locked_until <= (select now from clock))
    and ($4::bigint is null or b.pinned is null or b.pinned between $4 and $5)
  order by m.visible_at, m.id
  limit $2
  for no key update of b skip locked
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
  where m.instance_id = chosen.instance_id
    and m.visible_at <= (select now from clock)
  returning m.id, m.instance_id, m.lock_token, m.work_item, m.attempt_count
), locked as (
  update {schema}.mailbox b
  set
    lock_token = turn.lock_token,
    locked_until = clock_timestamp() + make_interval(secs => $3)
  from (select distinct instance_id, lock_token from tagged) as turn
  where b.instance_id = turn.instance_id
), next as (
  select least(
    (select min(visible_at) from {schema}.message where visible_at > (select now from clock)),
    (select min(locked_until) from {schema}.mailbox where locked_until > (select now from clock)),
    (select now + make_interval(secs => $3) from clock where exists (select from tagged))
  ) as at
)
select
  (select count(*) from picked) as picked,
  extract(epoch from next.at - clock_timestamp())::float8 as due_s,
  tagged.instance_id,
  tagged.lock_token,
  tagged.work_item,
  tagged.attempt_count
from next
left join tagged on true
order by tagged.id
