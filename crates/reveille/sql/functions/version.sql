-- The version of the schema as text, null when no migration was applied: "which Reveille is this
-- database for?"
-- locks: nothing
create or replace function {schema}.version()
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return (select pg_catalog.max(version)::text from {schema}.migration);
end
$reveille$;

comment on function {schema}.version() is 'Reveille: the version of the schema';
