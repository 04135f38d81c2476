-- How many seconds a job waits after failure number in_failures. in_backoff is null for the usual
-- pauses (0 s, 30 s, 5 min, as often as needed), 'list:0,30,300' for pauses of one's own of which
-- the last repeats, or 'exponential:first:longest' for a random time up to first, doubled with
-- every failure, and at most longest: jobs that failed together do not come back together.
-- check_backoff has checked the text.
-- locks: nothing
create or replace function {schema}.retry_delay(in_backoff text, in_failures int)
returns double precision
language plpgsql
as $reveille$
declare
  pauses text[];
begin
  if in_backoff is null then
    return case in_failures when 1 then 0 when 2 then 30 else 300 end;
  elsif in_backoff like 'list:%' then
    pauses := pg_catalog.string_to_array(pg_catalog.substr(in_backoff, 6), ',');
    return pauses[least(greatest(in_failures, 1), pg_catalog.array_length(pauses, 1))]::double precision;
  elsif in_backoff like 'exponential:%:%' then
    return pg_catalog.random() * least(
      pg_catalog.split_part(in_backoff, ':', 2)::double precision * pg_catalog.power(2, least(greatest(in_failures, 1), 60) - 1),
      pg_catalog.split_part(in_backoff, ':', 3)::double precision
    );
  end if;
  raise exception 'the backoff must be list:<seconds>,… or exponential:<first>:<longest>, not "%"', in_backoff
    using errcode = 'invalid_parameter_value';
end
$reveille$;

comment on function {schema}.retry_delay(text, int) is 'Reveille: the pause before a job''s next attempt';
