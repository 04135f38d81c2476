-- What makes a job the same as another: 32 bytes of a hash over the parts that the scope names, and
-- the caller's own key. The scope is any of 'kind', 'queue' and 'args', joined by commas; arguments
-- are compared byte for byte.
-- locks: nothing
create or replace function {schema}.job_unique_key(in_scope text, in_kind text, in_queue text, in_args bytea, in_key text)
returns bytea
language plpgsql
as $reveille$
declare
  parts text[] := pg_catalog.string_to_array(pg_catalog.replace(in_scope, ' ', ''), ',');
  piece bytea;
  whole bytea := ''::bytea;
begin
  if in_scope is null or pg_catalog.array_length(parts, 1) is null or not parts <@ array['kind', 'queue', 'args'] then
    raise exception 'the unique scope must name some of kind, queue and args, not "%"', coalesce(in_scope, '')
      using errcode = 'invalid_parameter_value';
  end if;
  foreach piece in array array[
    case when 'kind' = any (parts) then pg_catalog.convert_to(in_kind, 'UTF8') end,
    case when 'queue' = any (parts) then pg_catalog.convert_to(in_queue, 'UTF8') end,
    case when 'args' = any (parts) then in_args end,
    pg_catalog.convert_to(in_key, 'UTF8')
  ] loop
    -- With its length, so that different parts cannot give the same bytes; -1 for a part that does
    -- not count.
    whole := whole || pg_catalog.int8send(coalesce(pg_catalog.octet_length(piece), -1)) || coalesce(piece, ''::bytea);
  end loop;
  return pg_catalog.sha256(whole);
end
$reveille$;

comment on function {schema}.job_unique_key(text, text, text, bytea, text) is 'Reveille: what makes a job unique';
