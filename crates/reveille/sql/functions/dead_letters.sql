-- Dead letters of a queue, a group and a partition (by name), dead since and before a time, and
-- with a text in the error (in any case) or in the transaction id; null for any of them. The name
-- of a deleted group is null. Written so that it becomes part of the statement that calls it.
-- locks: nothing
create or replace function {schema}.dead_letters(
  in_queue text, in_group text, in_partition text, in_since timestamptz, in_before timestamptz, in_text text
)
returns table (
  id bigint, queue text, partition text, partition_uid uuid, consumer text, seq bigint,
  message_id uuid, transaction_id text, trace_id uuid, producer text, key_id int, payload bytea,
  pushed_at timestamptz, at timestamptz, failures int, deliveries int, error text
)
language sql
stable
as $reveille$
  select
    dead_letter.id, queue.name, partition.name, partition.uid, consumer_group.name, dead_letter.seq,
    dead_letter.message_id, dead_letter.transaction_id, dead_letter.trace_id, dead_letter.producer,
    dead_letter.key_id, dead_letter.payload, dead_letter.pushed_at, dead_letter.at,
    dead_letter.failures, dead_letter.deliveries, dead_letter.error
  from {schema}.dead_letter
  join {schema}.queue on queue.id = dead_letter.queue
  join {schema}.partition on partition.id = dead_letter.partition
  left join {schema}.consumer_group on consumer_group.id = dead_letter.grp
  where (in_queue is null or queue.name = in_queue)
    and (in_group is null or consumer_group.name = in_group)
    and (in_partition is null or partition.name = in_partition)
    and (in_since is null or dead_letter.at >= in_since)
    and (in_before is null or dead_letter.at < in_before)
    and (
      in_text is null
      or pg_catalog.strpos(pg_catalog.lower(dead_letter.error), pg_catalog.lower(in_text)) > 0
      or pg_catalog.strpos(dead_letter.transaction_id, in_text) > 0
    )
$reveille$;

comment on function {schema}.dead_letters(text, text, text, timestamptz, timestamptz, text)
  is 'Reveille: dead letters that match a filter';
