-- Remember runs of growing keys, unless one of the keys was seen within its window: then nothing is remembered, and false is
-- returned. A run: its partition, its least and greatest key, where its keys and their messages' ids lie in in_keys and
-- in_ids, and when it may be forgotten. Whoever calls holds the heads of the partitions; being volatile, this sees what was
-- committed before they were taken, which the calling statement may have begun too early to see.
-- locks: the new rows
create or replace function {schema}.remember(
  in_partitions int[], in_lows uuid[], in_highs uuid[], in_first int[], in_last int[], in_keys uuid[], in_ids uuid[],
  in_untils timestamptz[]
)
returns boolean
language plpgsql
volatile
as $reveille$
begin
  if exists (
    select
    from unnest(in_partitions, in_lows, in_highs, in_first, in_last) as new (partition, low, high, first, last)
    cross join lateral (
      select coalesce(seen.keys, array[seen.high]) as keys, in_keys[new.first:new.last] as asked
      from {schema}.dedup_run as seen
      where seen.partition = new.partition
        and seen.high >= new.low
        and seen.high <= {schema}.dedup_reach(new.high)
        and seen.low <= new.high
        and seen.until > clock_timestamp()
      offset 0
    ) as old
    where exists (
      select from unnest(old.keys) as key where key between new.low and new.high and key = any (old.asked)
    )
  ) then
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
