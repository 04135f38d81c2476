-- Refuse a backoff that retry_delay could not read: a list has 1 to 100 pauses, an exponential one
-- begins above zero and does not end below its beginning; all are seconds, written as plain
-- numbers, of at most a year.
-- locks: nothing
create or replace function {schema}.check_backoff(in_backoff text)
returns void
language plpgsql
as $reveille$
declare
  pauses text[];
  seconds double precision[];
begin
  if in_backoff ~ '^(list|exponential):' then
    pauses := pg_catalog.string_to_array(pg_catalog.substr(in_backoff, pg_catalog.strpos(in_backoff, ':') + 1),
      case when in_backoff like 'list:%' then ',' else ':' end);
    -- Nine digits before the point: no such number is too large to be read.
    if (select pg_catalog.bool_and(pause ~ '^ *[0-9]{1,9}(\.[0-9]+)? *$') from pg_catalog.unnest(pauses) as pause) then
      seconds := pauses::double precision[];
      if 31622400 >= all (seconds) and (
        (in_backoff like 'list:%' and pg_catalog.array_length(seconds, 1) <= 100)
        or (in_backoff like 'exponential:%' and pg_catalog.array_length(seconds, 1) = 2
          and seconds[1] > 0 and seconds[2] >= seconds[1])
      ) then
        return;
      end if;
    end if;
  end if;
  raise exception 'the backoff must be list:<seconds>,… or exponential:<first>:<longest>, with pauses of at most a year, not "%"',
    pg_catalog.left(in_backoff, 200) using errcode = 'invalid_parameter_value';
end
$reveille$;

comment on function {schema}.check_backoff(text) is 'Reveille: refuses a backoff that cannot be read';
