-- The greatest growing key of a partition to which a node of the version before has pushed: it kept all of its keys in dedup_run, and told
-- the head nothing. Being volatile, this sees what was committed while the caller waited for the head.
-- locks: nothing
create or replace function {schema}.key_high_of(in_partition int, in_known uuid)
returns uuid
language plpgsql
volatile
as $reveille$
begin
  return greatest(in_known, (
    select dedup_run.high
    from {schema}.dedup_run
    where dedup_run.partition = in_partition
    order by dedup_run.high desc
    limit 1
  ));
end
$reveille$;

comment on function {schema}.key_high_of(int, uuid) is 'Reveille: the greatest growing transaction id of a partition';
