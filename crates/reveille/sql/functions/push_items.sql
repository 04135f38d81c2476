-- Push messages as part of the caller's transaction: parallel arrays, of which transaction ids,
-- trace ids, producers and key ids may be null, as a whole or for single messages. The messages
-- reach their partitions after the commit. The commit notifies the nodes, once for each queue that
-- is not quiet.
-- locks: nothing that exists; a notification takes a lock on the whole database while the caller
--        commits
create or replace function {schema}.push_items(
  in_queues text[], in_partitions text[], in_ids uuid[], in_payloads bytea[],
  in_transaction_ids text[], in_trace_ids uuid[], in_producers text[], in_key_ids int[]
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
declare
  fault text;
  pushed record;
begin
  select case
           when item.queue is null or item.queue = '' then 'the queue''s name is empty'
           when pg_catalog.octet_length(item.queue) > 512 then 'the queue''s name is longer than 512 bytes'
           when item.partition is null or item.partition = '' then 'the partition''s name is empty'
           when pg_catalog.octet_length(item.partition) > 512 then 'the partition''s name is longer than 512 bytes'
           when item.payload is null then 'the payload is null: a JSON null is written ''null'''
           when pg_catalog.octet_length(item.transaction_id) > 1024 then 'the transaction id must be at most 1024 bytes long'
           when pg_catalog.octet_length(item.producer) > 1024 then 'the producer must be at most 1024 bytes long'
         end
  into fault
  from unnest(in_queues, in_partitions, in_payloads, in_transaction_ids, in_producers)
    as item (queue, partition, payload, transaction_id, producer)
  where item.queue is null or item.queue = '' or pg_catalog.octet_length(item.queue) > 512
     or item.partition is null or item.partition = '' or pg_catalog.octet_length(item.partition) > 512
     or item.payload is null or pg_catalog.octet_length(item.transaction_id) > 1024 or pg_catalog.octet_length(item.producer) > 1024
  limit 1;
  if fault is not null then
    raise exception '%', fault using errcode = 'invalid_parameter_value';
  end if;

  for pushed in
    select item.queue as name, pg_catalog.bool_or(item.key_id is null) as plain, queue.id, queue.encrypted, queue.quiet
    from unnest(in_queues, in_key_ids) as item (queue, key_id)
    left join {schema}.queue on queue.name = item.queue
    group by item.queue, queue.id
  loop
    if pushed.encrypted and pushed.plain then
      raise exception 'the queue "%" is encrypted: push to it through a program that has the key', pushed.name
        using errcode = 'invalid_parameter_value';
    end if;
    if pushed.quiet is not true then
      -- The same payload twice in a transaction is one notification. A queue that does not exist
      -- yet has no id.
      perform pg_catalog.pg_notify({schema}.hint_channel(), E'hint\nmessages' || coalesce(' ' || pushed.id, ''));
    end if;
  end loop;

  insert into {schema}.outbox (queue, partition, message_id, transaction_id, trace_id, producer, key_id, payload)
  select item.queue, item.partition, item.id, item.transaction_id, item.trace_id, item.producer, item.key_id, item.payload
  from unnest(in_queues, in_partitions, in_ids, in_payloads, in_transaction_ids, in_trace_ids, in_producers, in_key_ids)
    with ordinality as item (queue, partition, id, payload, transaction_id, trace_id, producer, key_id, place)
  order by item.place;
end
$reveille$;

comment on function {schema}.push_items(text[], text[], uuid[], bytea[], text[], uuid[], text[], int[])
  is 'Reveille: pushes messages in the caller''s transaction';
