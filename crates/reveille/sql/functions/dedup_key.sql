-- The key under which a transaction id is remembered: the id itself if it is a UUID in its usual
-- spelling, else a UUID of version 8 made of its hash. A UUID that has version 8 itself is hashed,
-- so that no producer can choose the key of another id. The library does the same.
-- locks: nothing
create or replace function {schema}.dedup_key(in_transaction_id text)
returns uuid
language plpgsql
immutable parallel safe strict
as $reveille$
declare
  digest bytea;
begin
  if in_transaction_id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-79a-f][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$' then
    return in_transaction_id::uuid;
  end if;
  digest := pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(in_transaction_id, 'UTF8')), 1, 16);
  digest := pg_catalog.set_byte(digest, 6, (pg_catalog.get_byte(digest, 6) & 15) | 128);
  digest := pg_catalog.set_byte(digest, 8, (pg_catalog.get_byte(digest, 8) & 63) | 128);
  return pg_catalog.encode(digest, 'hex')::uuid;
end
$reveille$;

comment on function {schema}.dedup_key(text) is 'Reveille: the key of a transaction id';
