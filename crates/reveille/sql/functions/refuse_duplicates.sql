-- Fails a push that has keys which were seen before; the caller then finds out which.
-- locks: nothing
create or replace function {schema}.refuse_duplicates()
returns boolean
language plpgsql
as $reveille$
begin
  raise exception 'a transaction id was seen before' using errcode = 'RV001';
end
$reveille$;

comment on function {schema}.refuse_duplicates() is 'Reveille: fails a push that has duplicates';
