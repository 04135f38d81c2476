-- Put one message of a partition into the dead letters of a group. Does nothing if the message is
-- gone. A claim does the same for poisoned messages, in messages/pop/claim.sql: change both.
-- locks: nothing
create or replace function {schema}.bury(
  in_partition int, in_group int, in_queue int, in_seq bigint, in_failures int, in_deliveries int, in_error text
)
returns void
language plpgsql
as $reveille$
begin
  insert into {schema}.dead_letter
    (queue, partition, grp, seq, message_id, transaction_id, trace_id, producer, key_id, payload, pushed_at, failures,
     deliveries, error)
  select in_queue, in_partition, in_group, in_seq, held.ids[held.i], coalesce(held.transaction_ids[held.i], held.ids[held.i]::text),
         held.trace_ids[held.i], held.producers[held.i], held.key_id, held.payloads[held.i], held.at, in_failures,
         in_deliveries, pg_catalog.left(in_error, 4000)
  from (
    select segment.*, (in_seq - segment.last_seq + segment.n)::int as i
    from {schema}.segment
    where segment.partition = in_partition and segment.last_seq >= in_seq
    order by segment.last_seq
    limit 1
  ) as held
  where held.i between 1 and held.n
    and not coalesce(held.i = any (held.gone), false)
    and coalesce(held.only_grp = in_group, true);
end
$reveille$;

comment on function {schema}.bury(int, int, int, bigint, int, int, text) is 'Reveille: puts a message into the dead letters';
