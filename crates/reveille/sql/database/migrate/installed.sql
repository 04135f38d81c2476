-- Whether schema $1 exists, and whether it holds our bookkeeping: another program's table may have
-- that name, but does not record what each migration made.
-- locks: nothing
select
  n.oid is not null as has_schema,
  exists (
    select
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'made'
    where c.relnamespace = n.oid
      and c.relname = 'migration'
      and c.relkind = 'r'
  ) as has_tables
from (values (1)) as always (one)
left join pg_namespace n on n.nspname = $1
