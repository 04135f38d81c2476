-- A new id for a message: a UUID of version 7, milliseconds first.
-- locks: nothing
create or replace function {schema}.message_id()
returns uuid
language plpgsql
volatile parallel safe
as $reveille$
declare
  bytes bytea := uuid_send(gen_random_uuid());
begin
  bytes := overlay(bytes placing substr(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint), 3) from 1 for 6);
  return encode(set_byte(bytes, 6, (get_byte(bytes, 6) & 15) | 112), 'hex')::uuid;
end
$reveille$;

comment on function {schema}.message_id() is 'Reveille: a new id for a message';
