-- Store growing keys in dedup_run, each with the id of its message and the end of its window
-- (parallel arrays): one row for the keys of a partition that were made within the same 256 ms (by
-- their first ten digits) and whose windows end within the same second. Returns how many rows.
-- locks: the new rows
create or replace function {schema}.note_keys(in_partitions int[], in_keys uuid[], in_ids uuid[], in_untils timestamptz[])
returns bigint
language plpgsql
volatile
as $reveille$
declare
  noted bigint;
begin
  insert into {schema}.dedup_run (partition, low, high, keys, ids, until)
  select run.partition, run.keys[1], run.keys[pg_catalog.cardinality(run.keys)],
         case when pg_catalog.cardinality(run.keys) > 1 then run.keys end, run.ids, run.until
  from (
    select counted.partition, pg_catalog.array_agg(counted.key order by counted.key) as keys,
           pg_catalog.array_agg(counted.id order by counted.key) as ids, pg_catalog.max(counted.until) as until
    from (
      select given.*, pg_catalog.left(given.key::text, 11) as digits, pg_catalog.date_trunc('second', given.until) as second,
             -- A row fits a page.
             pg_catalog.row_number() over (
               partition by given.partition, pg_catalog.left(given.key::text, 11), pg_catalog.date_trunc('second', given.until)
               order by given.key
             ) / 240 as page
      from unnest(in_partitions, in_keys, in_ids, in_untils) as given (partition, key, id, until)
    ) as counted
    group by counted.partition, counted.digits, counted.second, counted.page
  ) as run;
  get diagnostics noted = row_count;
  return noted;
end
$reveille$;

comment on function {schema}.note_keys(int[], uuid[], uuid[], timestamptz[]) is 'Reveille: stores growing transaction ids beside the log';
