-- Remember runs of growing keys, unless one of the keys was seen within its window: then nothing is remembered, and false is
-- returned. A run: its partition, its least and greatest key, where its keys and their messages' ids lie in in_keys and
-- in_ids, and when it may be forgotten. Only nodes of the version before call it, with the heads in hand; it goes with the next one.
-- locks: the new rows
create or replace function {schema}.remember(
  in_partitions int[], in_lows uuid[], in_highs uuid[], in_first int[], in_last int[], in_keys uuid[], in_ids uuid[],
  in_untils timestamptz[]
)
returns boolean
language plpgsql
volatile
as $reveille$
declare
  places int[];
  keys uuid[];
begin
  select pg_catalog.array_agg(new.partition), pg_catalog.array_agg(item.key)
  into places, keys
  from unnest(in_partitions, in_first, in_last) as new (partition, first, last)
  cross join lateral pg_catalog.unnest(in_keys[new.first:new.last]) as item (key);
  if exists (select from {schema}.growing_seen(places, keys)) then
    return false;
  end if;
  insert into {schema}.dedup_run (partition, low, high, keys, ids, until)
  select new.partition, new.low, new.high, case when new.last > new.first then in_keys[new.first:new.last] end,
         in_ids[new.first:new.last], new.until
  from unnest(in_partitions, in_lows, in_highs, in_first, in_last, in_untils)
    as new (partition, low, high, first, last, until);
  return true;
end
$reveille$;

comment on function {schema}.remember(int[], uuid[], uuid[], int[], int[], uuid[], uuid[], timestamptz[])
  is 'Reveille: remembers growing transaction ids of a push';
