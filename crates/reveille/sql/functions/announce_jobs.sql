-- Notify the nodes with the caller's commit that these queues have jobs: once for each that is not
-- quiet, and not at all where the setting reveille.notify of the session, the role or the database
-- is off. No other function of jobs notifies.
-- locks: a notification takes a lock on the whole database while the caller commits
create or replace function {schema}.announce_jobs(in_queues text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
declare
  name text;
begin
  if pg_catalog.lower(pg_catalog.current_setting('reveille.notify', true)) in ('off', 'false', 'no', '0') then
    return;
  end if;
  for name in
    select distinct given.queue
    from pg_catalog.unnest(in_queues) as given (queue)
    where not exists (select from {schema}.job_queue where job_queue.name = given.queue and quiet)
  loop
    -- PostgreSQL merges equal notifications of a transaction. A name that is not a single word
    -- cannot be written: then all queues are woken. The claim round reads when a delayed job is
    -- due.
    perform pg_catalog.pg_notify({schema}.hint_channel(),
      E'hint\njobs' || case when name ~ '^[!-~]+$' then ' ' || name else '' end);
  end loop;
end
$reveille$;

comment on function {schema}.announce_jobs(text[]) is 'Reveille: wakes workers with the caller''s commit';
