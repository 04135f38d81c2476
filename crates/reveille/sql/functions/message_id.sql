-- A new id for a message: a UUID of version 7, milliseconds first.
-- locks: nothing
create or replace function {schema}.message_id()
returns uuid
language plpgsql
volatile parallel safe
as $reveille$
declare
  bytes bytea := pg_catalog.uuid_send(pg_catalog.gen_random_uuid());
begin
  bytes := overlay(bytes placing
    pg_catalog.substr(pg_catalog.int8send((extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint), 3) from 1 for 6);
  return pg_catalog.encode(pg_catalog.set_byte(bytes, 6, (pg_catalog.get_byte(bytes, 6) & 15) | 112), 'hex')::uuid;
end
$reveille$;

comment on function {schema}.message_id() is 'Reveille: a new id for a message';
