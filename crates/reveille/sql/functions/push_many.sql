-- Push messages to one partition as part of the caller's transaction, and return their ids in the
-- same order. As push, with arrays; transaction ids may be null, as a whole or for single messages.
-- locks: nothing that exists; a notification takes a lock on the whole database while the caller
--        commits
create or replace function {schema}.push_many(
  queue text, payloads bytea[], partition text default 'Default', transaction_ids text[] default null,
  producer text default null
)
returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
declare
  many int := coalesce(pg_catalog.cardinality(payloads), 0);
  largest int := (select pg_catalog.max(pg_catalog.octet_length(item)) from pg_catalog.unnest(payloads) as item);
  ids uuid[];
begin
  if many = 0 then
    return '{}';
  end if;
  if pg_catalog.cardinality(transaction_ids) <> many then
    raise exception 'there are % payloads and % transaction ids', many, pg_catalog.cardinality(transaction_ids)
      using errcode = 'invalid_parameter_value';
  end if;
  if largest > 16777216 then
    raise exception 'the payload has % bytes and may have at most 16777216', largest
      using errcode = 'invalid_parameter_value';
  end if;
  ids := array(select {schema}.message_id() from pg_catalog.generate_series(1, many));
  perform {schema}.push_items(pg_catalog.array_fill(queue, array[many]), pg_catalog.array_fill(partition, array[many]), ids, payloads,
    transaction_ids, null, pg_catalog.array_fill(producer, array[many]), null);
  return ids;
end
$reveille$;

comment on function {schema}.push_many(text, bytea[], text, text[], text)
  is 'Reveille: pushes messages in the caller''s transaction';

create or replace function {schema}.push_many(
  queue text, payloads text[], partition text default 'Default', transaction_ids text[] default null,
  producer text default null
)
returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return {schema}.push_many(queue,
    array(
      select pg_catalog.convert_to(item.payload, 'UTF8')
      from pg_catalog.unnest(payloads) with ordinality as item (payload, place)
      order by place
    ),
    partition, transaction_ids, producer);
end
$reveille$;

comment on function {schema}.push_many(text, text[], text, text[], text)
  is 'Reveille: pushes messages in the caller''s transaction';

create or replace function {schema}.push_many(
  queue text, payloads json[], partition text default 'Default', transaction_ids text[] default null,
  producer text default null
)
returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return {schema}.push_many(queue, payloads::text[], partition, transaction_ids, producer);
end
$reveille$;

comment on function {schema}.push_many(text, json[], text, text[], text)
  is 'Reveille: pushes messages in the caller''s transaction';

create or replace function {schema}.push_many(
  queue text, payloads jsonb[], partition text default 'Default', transaction_ids text[] default null,
  producer text default null
)
returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return {schema}.push_many(queue, payloads::text[], partition, transaction_ids, producer);
end
$reveille$;

comment on function {schema}.push_many(text, jsonb[], text, text[], text)
  is 'Reveille: pushes messages in the caller''s transaction';
