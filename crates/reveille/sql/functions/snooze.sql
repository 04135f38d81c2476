-- Put off the job held under a token; this attempt does not count. Refuses a token that is not held
-- any more.
-- locks: the job
create or replace function {schema}.snooze(token text, delay interval)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  perform {schema}.settle_job(token, 'snooze', delay, null, null, null, '24 hours');
end
$reveille$;

comment on function {schema}.snooze(text, interval) is 'Reveille: puts a job off in the caller''s transaction';
