-- When each kind of turn that slots wait for is due next; part of the heartbeat. A kind is a range
-- of versions, or any if it is null. A thousand messages are enough to read: with more, a node is
-- at work on them, and claims again by itself.
-- locks:  nothing
select
  waited.ordinal,
  extract(epoch from next.at - clock_timestamp()) as due_s
from unnest({from}, {to}) with ordinality as waited (from_version, to_version, ordinal)
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
        or waited.from_version is null
        or b.pinned between waited.from_version and waited.to_version
      )
    order by m.visible_at
    limit 1000
  ) as first
) as next
where next.at < clock_timestamp() + make_interval(secs => {horizon})
