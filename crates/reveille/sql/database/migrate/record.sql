-- Note that migration $1, called $2, with checksum $3, was applied to schema $4, and what this
-- transaction made there. Every object has a dependency on its schema, written by the transaction
-- that made it.
-- locks: the new row
insert into {schema}.migration (version, name, checksum, made)
select
  $1,
  $2,
  $3,
  array (
    select o.type || ' ' || o.identity
    from pg_depend d
    join pg_namespace n on n.oid = d.refobjid and d.refclassid = 'pg_namespace'::regclass
    cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) o
    where n.nspname = $4
      and d.xmin = pg_current_xact_id()::xid
    order by 1
  )
