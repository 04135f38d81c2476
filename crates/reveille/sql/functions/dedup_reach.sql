-- A bound above every run that has this key: the keys of one run were made within 256 ms, by their
-- own clocks; see note_keys, which makes the runs.
-- locks: nothing
create or replace function {schema}.dedup_reach(in_key uuid)
returns uuid
language plpgsql
immutable parallel safe strict
as $reveille$
declare
  digits text := pg_catalog.replace(in_key::text, '-', '');
  millis bigint := ('x' || pg_catalog.substr(digits, 1, 12))::bit(48)::bigint;
begin
  return (pg_catalog.lpad(pg_catalog.to_hex(least(millis + 257, 281474976710655)), 12, '0') || pg_catalog.repeat('f', 20))::uuid;
end
$reveille$;

comment on function {schema}.dedup_reach(uuid) is 'Reveille: how far a run of growing transaction ids reaches';
