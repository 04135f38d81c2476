-- Move the outbox of these partitions into their logs, in the order of the outbox, at most in_limit
-- messages, and return how many each partition got. Duplicates are dropped. The partition rows are
-- locked first, each later statement sees what was committed until then, and only rows that it
-- deleted itself are appended: so no message is moved twice, and messages that were committed
-- before a push began come before it.
--
-- A key keeps a message from being stored twice: see messages/push/append.sql.
--
-- Steps:
--   place             the partitions, with their queues
--   due               the oldest rows of their outboxes
--   taken             deletes these rows
--   keyed             the keys of the messages, if their queue checks keys
--   new_random_keys   stores the keys that do not grow, unless they are stored already,
--   old_growing_keys  finds those that grow and were pushed before,
--   new_growing_keys  and the others, each with its first message,
--   stored_keys       which it stores
--   new_messages      the messages that are no duplicates
--   numbered          their places in the log of their partition, and the bytes up to each
--   runs              neighbours that are sealed with the same key
--   grown             how many messages each partition gets, and its greatest growing key
--   moved             writes the partition rows
--   appended          writes the segments
-- locks: the partition rows, ascending; the dedup rows of the keys
create or replace function {schema}.move_partitions(in_partitions int[], in_limit int)
returns table (queue int, partition int, taken bigint, moved bigint)
language plpgsql
as $reveille$
#variable_conflict use_column
begin
  perform from {schema}.partition_row where partition_row.partition = any (in_partitions) order by partition_row.partition for update;

  return query
  with place as materialized (
    select partition.id as partition, queue.id as queue, queue.name as queue_name, partition.name, queue.dedup_window
    from {schema}.partition
    join {schema}.queue on queue.id = partition.queue
    join {schema}.partition_row on partition_row.partition = partition.id
    where partition.id = any (in_partitions)
  ), due as materialized (
    -- A range of one name: with an equality PostgreSQL might read the rows of all queues.
    select waiting.id, place.partition, place.dedup_window
    from (select distinct place.queue_name from place) as wanted
    cross join lateral (
      select outbox.id, outbox.queue, outbox.partition
      from {schema}.outbox
      where outbox.queue >= wanted.queue_name and outbox.queue <= wanted.queue_name
    ) as waiting
    join place on place.queue_name = waiting.queue and place.name = waiting.partition
    order by waiting.id
    limit in_limit
  ), taken as materialized (
    delete from {schema}.outbox
    using due
    where outbox.id = due.id
    returning outbox.id, due.partition, due.dedup_window, outbox.message_id, outbox.transaction_id, outbox.trace_id,
              outbox.producer, outbox.key_id, outbox.payload
  ), keyed as materialized (
    -- A UUID of version 7 grows with time.
    select given.*, coalesce(pg_catalog.substr(given.key::text, 15, 1) = '7', false) as grows
    from (
      select taken.*, case when taken.dedup_window > '0' then {schema}.dedup_key(taken.transaction_id) end as key
      from taken
    ) as given
  ), new_random_keys as (
    insert into {schema}.dedup as seen (partition, key, id, until)
    select distinct on (keyed.partition, keyed.key)
           keyed.partition, keyed.key, keyed.message_id, pg_catalog.clock_timestamp() + keyed.dedup_window
    from keyed
    where keyed.key is not null and not keyed.grows
    order by keyed.partition, keyed.key, keyed.id
    on conflict (partition, key) do update
      set id = excluded.id, until = excluded.until
      where seen.until <= pg_catalog.clock_timestamp()
    returning seen.id
  ), old_growing_keys as materialized (
    -- An earlier statement locked the partition rows: this one sees every push before that.
    select seen.partition, seen.key
    from {schema}.growing_seen(
      array(select keyed.partition from keyed where keyed.grows order by keyed.id),
      array(select keyed.key from keyed where keyed.grows order by keyed.id)
    ) as seen
  ), new_growing_keys as materialized (
    select distinct on (keyed.partition, keyed.key)
           keyed.partition, keyed.key, keyed.message_id as id, keyed.dedup_window
    from keyed
    where keyed.grows
      and not exists (
        select
        from old_growing_keys
        where old_growing_keys.partition = keyed.partition and old_growing_keys.key = keyed.key
      )
    order by keyed.partition, keyed.key, keyed.id
  ), stored_keys as materialized (
    select {schema}.note_keys(
             pg_catalog.array_agg(new_key.partition), pg_catalog.array_agg(new_key.key), pg_catalog.array_agg(new_key.id),
             pg_catalog.array_agg(pg_catalog.clock_timestamp() + new_key.dedup_window)
           ) as rows
    from new_growing_keys as new_key
  ), new_messages as (
    select keyed.*
    from keyed
    left join (
      select new_random_keys.id from new_random_keys
      union all
      select new_growing_keys.id from new_growing_keys
    ) as first on first.id = keyed.message_id
    where keyed.key is null or first.id is not null
  ), numbered as (
    select new_messages.*,
           pg_catalog.row_number() over log as place,
           pg_catalog.sum(pg_catalog.octet_length(new_messages.payload)) over log as bytes,
           (new_messages.key_id is distinct from pg_catalog.lag(new_messages.key_id) over log)::int as begins_run
    from new_messages
    window log as (partition by new_messages.partition order by new_messages.id)
  ), runs as materialized (
    select numbered.*,
           pg_catalog.sum(numbered.begins_run) over (partition by numbered.partition order by numbered.id) as run
    from numbered
  ), grown as (
    select runs.partition, pg_catalog.max(runs.place) as n,
           (pg_catalog.array_agg(runs.key order by runs.key desc) filter (where runs.grows))[1] as high
    from runs
    group by runs.partition
  ), moved as (
    update {schema}.partition_row
    set next_seq = partition_row.next_seq + grown.n,
        new_since = coalesce(partition_row.new_since, pg_catalog.clock_timestamp()),
        last_at = greatest(partition_row.last_at, pg_catalog.clock_timestamp()),
        key_high = greatest(partition_row.key_high, grown.high)
    from grown
    where partition_row.partition = grown.partition
    returning partition_row.partition, partition_row.next_seq - grown.n - 1 as before, partition_row.last_at, grown.n
  ), appended as (
    insert into {schema}.segment
      (partition, last_seq, n, bytes, at, key_id, ids, transaction_ids, payloads, trace_ids, producers)
    select runs.partition, pg_catalog.max(moved.before + runs.place), pg_catalog.count(*),
           pg_catalog.sum(pg_catalog.octet_length(runs.payload)), pg_catalog.max(moved.last_at),
           pg_catalog.max(runs.key_id), pg_catalog.array_agg(runs.message_id order by runs.place),
           pg_catalog.array_agg(nullif(runs.transaction_id, runs.message_id::text) order by runs.place),
           pg_catalog.array_agg(runs.payload order by runs.place), pg_catalog.array_agg(runs.trace_id order by runs.place),
           pg_catalog.array_agg(runs.producer order by runs.place)
    from runs
    join moved on moved.partition = runs.partition
    -- A segment has one seal key, at most 256 messages and about a mebibyte.
    group by runs.partition, runs.run, (runs.place - 1) / 256, runs.bytes / 1048576
  )
  select place.queue, place.partition, pg_catalog.count(*), coalesce(pg_catalog.max(moved.n), 0)
  -- Read once, so that stored_keys is executed.
  from (select pg_catalog.count(*) from stored_keys) as executed
  cross join taken
  join place on place.partition = taken.partition
  left join moved on moved.partition = taken.partition
  group by place.queue, place.partition;
end
$reveille$;

comment on function {schema}.move_partitions(int[], int) is 'Reveille: moves the outbox of partitions into their logs';
