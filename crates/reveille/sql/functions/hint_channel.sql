-- The channel on which the nodes of this schema talk.
-- locks: nothing
create or replace function {schema}.hint_channel()
returns text
language plpgsql
stable parallel safe
as $reveille$
begin
  -- The name of the schema as it is, not as it is quoted: asked of a type that lives in it.
  return (
    select 'reveille_' || encode(substr(sha256(convert_to(pg_namespace.nspname::text, 'UTF8')), 1, 8), 'hex')
    from pg_type
    join pg_namespace on pg_namespace.oid = pg_type.typnamespace
    where pg_type.oid = pg_typeof(null::{schema}.queue)
  );
end
$reveille$;

comment on function {schema}.hint_channel() is 'Reveille: the channel of this schema''s nodes';
