-- Ends a push of which some keys were seen before; the pusher then asks which ones.
-- locks: nothing
create or replace function {schema}.refuse_duplicates()
returns boolean
language plpgsql
as $reveille$
begin
  raise exception 'a transaction id was seen before' using errcode = 'RV001';
end
$reveille$;

comment on function {schema}.refuse_duplicates() is 'Reveille: ends a push that holds duplicates';
