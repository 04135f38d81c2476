-- When each waited kind of turn is due next: what the heartbeat asks. A thousand messages tell: with more, somebody is at
-- work on them, and looks again by himself.
-- locks:  nothing
select
  waited.key,
  extract(epoch from next.at - clock_timestamp())::float8 as due_s
from unnest({keys}) as waited (key)
cross join lateral (
  select min(first.at) as at
  from (
    select greatest(m.visible_at, b.locked_until) as at
    from {schema}.message m
    join {schema}.mailbox b on b.instance_id = m.instance_id
    where m.visible_at < (select clock_timestamp() + make_interval(secs => {horizon}))
      and b.known
      and (
        b.pinned is null
        or waited.key::json ->> 'from' is null
        or b.pinned between (waited.key::json ->> 'from')::bigint and (waited.key::json ->> 'to')::bigint
      )
    order by m.visible_at
    limit 1000
  ) as first
) as next
where next.at < clock_timestamp() + make_interval(secs => {horizon})
