-- Remove sessions that no owner holds and no activity names.
-- locks:  the sessions (skip locked)
with orphaned as materialized (
  select session_id
  from {schema}.session s
  where locked_until < clock_timestamp()
    and not exists (select from {schema}.activity a where a.session_id = s.session_id)
  for update skip locked
)
delete from {schema}.session s
using orphaned
where s.session_id = orphaned.session_id
returning true as removed
