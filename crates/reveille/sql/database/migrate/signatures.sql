-- The signatures of function $2 in schema $1, which of them this transaction wrote, and which are
-- ours by their comment.
-- locks: nothing
select
  o.identity,
  p.xmin = pg_current_xact_id()::xid as written_now,
  coalesce(obj_description(p.oid, 'pg_proc') like 'Reveille: %', false) as ours
from pg_proc p
join pg_namespace n on n.oid = p.pronamespace
cross join lateral pg_identify_object('pg_proc'::regclass, p.oid, 0) o
where n.nspname = $1
  and p.proname = $2
order by o.identity
