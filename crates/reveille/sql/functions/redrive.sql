-- Move dead letters back to the end of their partitions, for their own group alone: other groups
-- settled these messages long ago, and must not get them again. Message id, transaction id and
-- payload stay the same; the same commit removes the letter. Letters whose group or partition is
-- gone stay. Returns the partitions that have something to claim now.
-- locks: the partition rows, ascending; the letters
create or replace function {schema}.redrive(letters bigint[])
returns table (queue int, partition int, messages int)
language plpgsql
as $reveille$
#variable_conflict use_column
begin
  perform partition_row.partition
  from {schema}.partition_row
  where partition_row.partition in (select dead_letter.partition from {schema}.dead_letter where dead_letter.id = any (letters))
  order by partition_row.partition
  for update;

  return query
  with taken as (
    delete from {schema}.dead_letter
    using {schema}.partition_row, {schema}.consumer_group
    where dead_letter.id = any (letters)
      and partition_row.partition = dead_letter.partition
      and consumer_group.id = dead_letter.grp
    returning dead_letter.*
  ), numbered as (
    -- A segment ends after 256 messages or one mebibyte: a field of PostgreSQL holds at most one
    -- gibibyte.
    select taken.*,
           (pg_catalog.row_number() over mine - 1) / 256 as place,
           (pg_catalog.sum(pg_catalog.length(taken.payload)) over mine - pg_catalog.length(taken.payload)) / 1048576 as mebibyte
    from taken
    window mine as (partition by taken.partition, taken.grp, taken.key_id order by taken.id)
  ), piece as (
    select numbered.partition, numbered.grp, numbered.key_id, pg_catalog.min(numbered.id) as first_id, pg_catalog.count(*)::int as n,
           pg_catalog.sum(pg_catalog.length(numbered.payload))::int as bytes,
           pg_catalog.array_agg(numbered.message_id order by numbered.id) as ids,
           pg_catalog.array_agg(nullif(numbered.transaction_id, numbered.message_id::text) order by numbered.id) as transaction_ids,
           pg_catalog.array_agg(numbered.payload order by numbered.id) as payloads,
           pg_catalog.array_agg(numbered.trace_id order by numbered.id) as trace_ids,
           pg_catalog.array_agg(numbered.producer order by numbered.id) as producers
    from numbered
    group by numbered.partition, numbered.grp, numbered.key_id, numbered.place, numbered.mebibyte
  ), placed as (
    select piece.*, pg_catalog.sum(piece.n) over (partition by piece.partition order by piece.first_id)::int as through
    from piece
  ), moved as (
    update {schema}.partition_row
    set next_seq = partition_row.next_seq + added.n,
        new_since = coalesce(partition_row.new_since, pg_catalog.clock_timestamp()),
        last_at = greatest(partition_row.last_at, pg_catalog.clock_timestamp())
    from (select piece.partition, pg_catalog.sum(piece.n)::int as n from piece group by piece.partition) as added
    where partition_row.partition = added.partition
    returning partition_row.queue, partition_row.partition, partition_row.next_seq - added.n - 1 as before, partition_row.last_at, added.n
  ), appended as (
    insert into {schema}.segment
      (partition, last_seq, n, bytes, at, key_id, only_grp, ids, transaction_ids, payloads, trace_ids, producers)
    select placed.partition, moved.before + placed.through, placed.n, placed.bytes, moved.last_at, placed.key_id, placed.grp,
           placed.ids, placed.transaction_ids, placed.payloads, placed.trace_ids, placed.producers
    from placed
    join moved on moved.partition = placed.partition
    returning 1
  )
  select moved.queue, moved.partition, moved.n
  from moved
  where (select pg_catalog.count(*) from appended) > 0;
end
$reveille$;

comment on function {schema}.redrive(bigint[]) is 'Reveille: moves dead letters back into their queue';
