-- Make a group known to its queue, after its cursors were created: those of partitions up to
-- in_through by earlier steps, the others here. Returns whether the group is known now; it is not
-- if the queue is gone. The caller must let the group catch up in a later transaction: before the
-- commit of this one, a partition may have been marked ready for the other groups and not for this
-- group.
-- locks: the queue's row, so that no partition is created meanwhile; the group's row; the new
--        cursors, ascending
create or replace function {schema}.finish_group(in_group int, in_through int)
returns boolean
language plpgsql
as $reveille$
declare
  owner int := (select consumer_group.begun_for from {schema}.consumer_group where consumer_group.id = in_group);
begin
  if owner is null then
    return exists (select from {schema}.consumer_group where consumer_group.id = in_group);
  end if;
  perform from {schema}.queue where queue.id = owner for update;
  if not found then
    delete from {schema}.consumer_group where consumer_group.id = in_group and consumer_group.begun_for is not null;
    return false;
  end if;
  -- All partitions above in_through, also those that earlier steps may have seen: one may have been
  -- uncommitted then, with a lower number than one that was seen. Now none is.
  perform {schema}.make_cursors(in_group, in_through, in_through, 2147483647);
  -- Its age counts from here: reconcile leaves a young group time to catch up.
  update {schema}.consumer_group
  set queue = owner, begun_for = null, created_at = pg_catalog.clock_timestamp()
  where consumer_group.id = in_group and consumer_group.begun_for is not null;
  return true;
end
$reveille$;

comment on function {schema}.finish_group(int, int) is 'Reveille: makes a consumer group known to its queue';
