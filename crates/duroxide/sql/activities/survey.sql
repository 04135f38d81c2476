-- When each kind of activity that slots wait for is due next; part of the heartbeat. A kind is the
-- owner of sessions, whether every tag is wanted, whether untagged ones are, and the wanted tags as
-- a JSON array.
-- locks:  nothing
select
  waited.ordinal,
  extract(epoch from next.at - clock_timestamp()) as due_s
from (
  select owner, any_tag, untagged, tags::jsonb as tags, ordinal
  from unnest({owners}, {any}, {untagged}, {tags}) with ordinality as key (owner, any_tag, untagged, tags, ordinal)
) as waited
cross join lateral (
  select min(case when s.owner_id <> waited.owner then greatest(a.due_at, s.locked_until) else a.due_at end) as at
  from {schema}.activity a
  left join {schema}.session s on s.session_id = a.session_id
  where a.due_at < (select clock_timestamp() + make_interval(secs => {horizon}))
    and (a.session_id is null or waited.owner is not null)
    and (waited.any_tag or case when a.tag is null then waited.untagged else waited.tags ? a.tag end)
) as next
where next.at < clock_timestamp() + make_interval(secs => {horizon})
