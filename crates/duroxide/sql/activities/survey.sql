-- When each waited kind of activity is due next: what the heartbeat asks.
-- locks:  nothing
select
  waited.key,
  extract(epoch from next.at - clock_timestamp())::float8 as due_s
from unnest({keys}) as waited (key)
cross join lateral (
  select
    min(
      case when s.owner_id <> waited.key::json ->> 'owner' then greatest(a.due_at, s.locked_until) else a.due_at end
    ) as at
  from {schema}.activity a
  left join {schema}.session s on s.session_id = a.session_id
  where a.due_at < (select clock_timestamp() + make_interval(secs => {horizon}))
    and (a.session_id is null or waited.key::json ->> 'owner' is not null)
    and (
      (waited.key::json ->> 'any')::boolean
      or case
        when a.tag is null then (waited.key::json ->> 'untagged')::boolean
        else (waited.key::json -> 'tags')::jsonb ? a.tag
      end
    )
) as next
where next.at < clock_timestamp() + make_interval(secs => {horizon})
