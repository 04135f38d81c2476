-- Push one message as part of the caller's transaction, and return its id: the commit makes it
-- visible and wakes its consumers. The payload is kept byte for byte: text and json as they are
-- written, jsonb as PostgreSQL writes it, bytea as it is. A message whose transaction id its
-- partition has seen within the queue's window is dropped when it is moved to its partition. More
-- than 16 MiB are refused, which is also the default limit of servers.
-- locks: nothing that exists; a notification takes a lock on the whole database while the caller
--        commits
create or replace function {schema}.push(
  queue text, payload bytea, partition text default 'Default', transaction_id text default null,
  trace_id uuid default null, producer text default null
)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
declare
  id uuid := {schema}.message_id();
begin
  if pg_catalog.octet_length(payload) > 16777216 then
    raise exception 'the payload has % bytes and may have at most 16777216', pg_catalog.octet_length(payload)
      using errcode = 'invalid_parameter_value';
  end if;
  perform {schema}.push_items(array[queue], array[partition], array[id], array[payload], array[transaction_id],
    array[trace_id], array[producer], null);
  return id;
end
$reveille$;

comment on function {schema}.push(text, bytea, text, text, uuid, text)
  is 'Reveille: pushes a message in the caller''s transaction';

create or replace function {schema}.push(
  queue text, payload text, partition text default 'Default', transaction_id text default null,
  trace_id uuid default null, producer text default null
)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return {schema}.push(queue, pg_catalog.convert_to(payload, 'UTF8'), partition, transaction_id, trace_id, producer);
end
$reveille$;

comment on function {schema}.push(text, text, text, text, uuid, text)
  is 'Reveille: pushes a message in the caller''s transaction';

create or replace function {schema}.push(
  queue text, payload json, partition text default 'Default', transaction_id text default null,
  trace_id uuid default null, producer text default null
)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return {schema}.push(queue, pg_catalog.convert_to(payload::text, 'UTF8'), partition, transaction_id, trace_id, producer);
end
$reveille$;

comment on function {schema}.push(text, json, text, text, uuid, text)
  is 'Reveille: pushes a message in the caller''s transaction';

create or replace function {schema}.push(
  queue text, payload jsonb, partition text default 'Default', transaction_id text default null,
  trace_id uuid default null, producer text default null
)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return {schema}.push(queue, pg_catalog.convert_to(payload::text, 'UTF8'), partition, transaction_id, trace_id, producer);
end
$reveille$;

comment on function {schema}.push(text, jsonb, text, text, uuid, text)
  is 'Reveille: pushes a message in the caller''s transaction';
