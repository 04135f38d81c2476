-- Fail the attempt held under a token: the job is tried again after the given delay, or else its
-- own backoff, and is dead when this was its last attempt. Refuses a token that is not held any
-- more.
-- locks: the job
create or replace function {schema}.fail(token text, code text, message text, delay interval default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  perform {schema}.settle_job(token, 'retry', delay, code, message, null, '24 hours');
end
$reveille$;

comment on function {schema}.fail(text, text, text, interval) is 'Reveille: fails a job in the caller''s transaction';
