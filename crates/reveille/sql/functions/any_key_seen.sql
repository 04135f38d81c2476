-- Whether one of these keys was pushed to its partition (parallel arrays, partitions repeated)
-- within its window. For keys that do not grow; note_if_new checks those that do. The caller holds
-- the partition rows. The function is volatile, so it sees what was committed before they were
-- locked, even if the calling statement began too early to see it.
-- locks: nothing
create or replace function {schema}.any_key_seen(in_partitions int[], in_keys uuid[])
returns boolean
language plpgsql
volatile
as $reveille$
begin
  return exists (
    select
    from unnest(in_partitions, in_keys) as asked (partition, key)
    cross join lateral (
      select
      from {schema}.dedup
      where dedup.partition = asked.partition and dedup.key = asked.key and dedup.until > pg_catalog.clock_timestamp()
      offset 0
    ) as seen
  );
end
$reveille$;

comment on function {schema}.any_key_seen(int[], uuid[]) is 'Reveille: whether a transaction id was seen before';
