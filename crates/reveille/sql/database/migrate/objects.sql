-- Everything that lives in schema $1 in its own right: no indexes, partitions or sequences that go
-- with a table. Our functions are known by their comment: another one may have been made under the
-- same name since.
-- locks: nothing
select distinct
  o.type || ' ' || o.identity as object,
  o.type as kind,
  o.identity,
  case when obj_description(p.oid, 'pg_proc') like 'Reveille: %' then p.proname end as function,
  coalesce(p.prorettype = 'trigger'::regtype, false) as of_trigger
from pg_depend d
join pg_namespace n on n.oid = d.refobjid and d.refclassid = 'pg_namespace'::regclass
cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) o
left join pg_class c on c.oid = d.objid and d.classid = 'pg_class'::regclass
left join pg_proc p on p.oid = d.objid and d.classid = 'pg_proc'::regclass
where n.nspname = $1
  and c.relispartition is not true
  and not exists (
    select
    from pg_depend owner
    where owner.classid = d.classid
      and owner.objid = d.objid
      and owner.refclassid = 'pg_class'::regclass
      and owner.deptype in ('a', 'i')
  )
order by object
