-- Remove the remaining rows of a deleted queue, at most about in_limit of each table, and return
-- how many these were: zero when none is left. Partition rows go first: a push that is under way
-- ends before, and none begins after. Does nothing to a queue that exists.
-- locks: the partition rows, ascending; then the rows
create or replace function {schema}.remove_leftovers(in_queue int, in_limit int)
returns bigint
language plpgsql
as $reveille$
declare
  parts int[];
  removed bigint := 0;
  batch bigint;
  rest bigint;
begin
  if exists (select from {schema}.queue where queue.id = in_queue) then
    return 0;
  end if;
  delete from {schema}.partition_row
  using (
    select partition_row.partition
    from {schema}.partition_row
    where partition_row.queue = in_queue
    order by partition_row.partition
    limit in_limit
    for update
  ) as dead
  where partition_row.partition = dead.partition;
  get diagnostics batch = row_count;
  removed := removed + batch;

  delete from {schema}.dead_letter
  where dead_letter.id in (select old.id from {schema}.dead_letter as old where old.queue = in_queue order by old.id limit in_limit);
  get diagnostics batch = row_count;
  removed := removed + batch;

  parts := array(
    select partition.id
    from {schema}.partition
    where partition.queue = in_queue
      and not exists (select from {schema}.partition_row where partition_row.partition = partition.id)
    order by partition.id
    limit 100
  );
  delete from {schema}.segment
  where (segment.partition, segment.last_seq) in (
    select old.partition, old.last_seq from {schema}.segment as old where old.partition = any (parts) limit in_limit
  );
  get diagnostics batch = row_count;
  removed := removed + batch;
  if batch > 0 then
    return removed;
  end if;
  delete from {schema}.dedup
  where (dedup.partition, dedup.key) in (
    select old.partition, old.key from {schema}.dedup as old where old.partition = any (parts) limit in_limit
  );
  get diagnostics batch = row_count;
  removed := removed + batch;
  delete from {schema}.dedup_run
  where dedup_run.ctid = any (array(
    select old.ctid from {schema}.dedup_run as old where old.partition = any (parts) limit in_limit
  ));
  get diagnostics rest = row_count;
  batch := batch + rest;
  removed := removed + rest;
  delete from {schema}.dedup_span
  where dedup_span.ctid = any (array(
    select old.ctid from {schema}.dedup_span as old where old.partition = any (parts) limit in_limit
  ));
  get diagnostics rest = row_count;
  removed := removed + rest;
  if batch + rest > 0 then
    return removed;
  end if;
  delete from {schema}.cursor where cursor.partition = any (parts);
  delete from {schema}.trace where trace.partition = any (parts);
  delete from {schema}.partition where partition.id = any (parts);
  get diagnostics batch = row_count;
  return removed + batch;
end
$reveille$;

comment on function {schema}.remove_leftovers(int, int) is 'Reveille: removes the remaining rows of a deleted queue';
