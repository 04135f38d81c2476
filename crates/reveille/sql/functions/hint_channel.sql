-- The channel on which the nodes of this schema exchange hints.
-- locks: nothing
create or replace function {schema}.hint_channel()
returns text
language plpgsql
stable parallel safe
as $reveille$
begin
  -- The name of the schema as it is, not as it is quoted: read from a type that lives in it.
  return (
    select 'reveille_' || pg_catalog.encode(
             pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(pg_namespace.nspname::text, 'UTF8')), 1, 8), 'hex')
    from pg_catalog.pg_type
    join pg_catalog.pg_namespace on pg_namespace.oid = pg_type.typnamespace
    where pg_type.oid = pg_catalog.pg_typeof(null::{schema}.queue)
  );
end
$reveille$;

comment on function {schema}.hint_channel() is 'Reveille: the notification channel of this schema';
