-- Move the outbox of these partitions into their logs, in the order of the outbox, at most in_limit
-- messages, and return how many each partition got. Duplicates are dropped. The partition rows are
-- locked first, each later statement sees what was committed until then, and only rows that it
-- deleted itself are appended: so no message is moved twice, and messages that were committed
-- before a push began come before it.
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
  ), named as materialized (
    select keyed.*, coalesce(pg_catalog.substr(keyed.key::text, 15, 1) = '7', false) as grows
    from (
      select taken.*, case when taken.dedup_window > '0' then {schema}.dedup_key(taken.transaction_id) end as key
      from taken
    ) as keyed
  ), remembered as (
    insert into {schema}.dedup as seen (partition, key, id, until)
    select distinct on (named.partition, named.key)
           named.partition, named.key, named.message_id, pg_catalog.clock_timestamp() + named.dedup_window
    from named
    where named.key is not null and not named.grows
    order by named.partition, named.key, named.id
    on conflict (partition, key) do update
      set id = excluded.id, until = excluded.until
      where seen.until <= pg_catalog.clock_timestamp()
    returning seen.id
  ), met as materialized (
    -- An earlier statement locked the partition rows: this one sees every push before that.
    select seen.partition, seen.key
    from {schema}.growing_seen(
      array(select named.partition from named where named.grows order by named.id),
      array(select named.key from named where named.grows order by named.id)
    ) as seen
  ), begun as materialized (
    select distinct on (named.partition, named.key) named.partition, named.key, named.message_id as id, named.dedup_window
    from named
    where named.grows
      and not exists (select from met where met.partition = named.partition and met.key = named.key)
    order by named.partition, named.key, named.id
  ), noted as materialized (
    select {schema}.note_keys(pg_catalog.array_agg(begun.partition), pg_catalog.array_agg(begun.key), pg_catalog.array_agg(begun.id),
                              pg_catalog.array_agg(pg_catalog.clock_timestamp() + begun.dedup_window)) as rows
    from begun
  ), kept as (
    select named.*
    from named
    left join (select remembered.id from remembered union all select begun.id from begun) as first on first.id = named.message_id
    where named.key is null or first.id is not null
  ), counted as (
    select kept.*,
           pg_catalog.row_number() over log as place,
           pg_catalog.sum(pg_catalog.octet_length(kept.payload)) over log as bytes,
           (kept.key_id is distinct from pg_catalog.lag(kept.key_id) over log)::int as turns
    from kept
    window log as (partition by kept.partition order by kept.id)
  ), cut as materialized (
    select counted.*, pg_catalog.sum(counted.turns) over (partition by counted.partition order by counted.id) as run
    from counted
  ), grown as (
    select cut.partition, pg_catalog.max(cut.place) as n,
           (pg_catalog.array_agg(cut.key order by cut.key desc) filter (where cut.grows))[1] as high
    from cut
    group by cut.partition
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
    select cut.partition, pg_catalog.max(moved.before + cut.place), pg_catalog.count(*),
           pg_catalog.sum(pg_catalog.octet_length(cut.payload)), pg_catalog.max(moved.last_at),
           pg_catalog.max(cut.key_id), pg_catalog.array_agg(cut.message_id order by cut.place),
           pg_catalog.array_agg(nullif(cut.transaction_id, cut.message_id::text) order by cut.place),
           pg_catalog.array_agg(cut.payload order by cut.place), pg_catalog.array_agg(cut.trace_id order by cut.place),
           pg_catalog.array_agg(cut.producer order by cut.place)
    from cut
    join moved on moved.partition = cut.partition
    group by cut.partition, cut.run, (cut.place - 1) / 256, cut.bytes / 1048576
  )
  select place.queue, place.partition, pg_catalog.count(*), coalesce(pg_catalog.max(moved.n), 0)
  from (select pg_catalog.count(*) from noted) as kept_apart
  cross join taken
  join place on place.partition = taken.partition
  left join moved on moved.partition = taken.partition
  group by place.queue, place.partition;
end
$reveille$;

comment on function {schema}.move_partitions(int[], int) is 'Reveille: moves the outbox of partitions into their logs';
