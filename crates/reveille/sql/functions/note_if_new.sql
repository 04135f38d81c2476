-- Store growing keys that did not arrive in order, as note_keys, unless one of them was seen within
-- its window: then nothing is stored, and false is returned. The caller holds the partition rows.
-- locks: the new rows
create or replace function {schema}.note_if_new(in_partitions int[], in_keys uuid[], in_ids uuid[], in_untils timestamptz[])
returns boolean
language plpgsql
volatile
as $reveille$
begin
  if exists (select from {schema}.growing_seen(in_partitions, in_keys)) then
    return false;
  end if;
  perform {schema}.note_keys(in_partitions, in_keys, in_ids, in_untils);
  return true;
end
$reveille$;

comment on function {schema}.note_if_new(int[], uuid[], uuid[], timestamptz[])
  is 'Reveille: stores transaction ids that arrived out of order';
