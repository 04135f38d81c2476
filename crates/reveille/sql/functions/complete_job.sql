-- Complete the job held under a token, if and when the caller's transaction commits. Refuses a
-- token that is not held any more.
-- locks: the job
create or replace function {schema}.complete(token text, result json default null, keep interval default '24 hours')
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  perform {schema}.settle_job(token, 'done', null, null, null, result, keep);
end
$reveille$;

comment on function {schema}.complete(text, json, interval) is 'Reveille: completes a job in the caller''s transaction';
