-- Settle one job that is held under a token ("id.epoch.nonce"), inside the handler's own
-- transaction. Refuses a token that is not held any more, so that the transaction cannot commit
-- work that another worker does now. A job that is scheduled again is announced. See settle_jobs
-- for the outcomes.
-- locks: the job; see announce_jobs
create or replace function {schema}.settle_job(
  in_token text, in_outcome text, in_delay interval, in_code text, in_message text, in_result json, in_keep interval
)
returns void
language plpgsql
as $reveille$
declare
  parts text[] := pg_catalog.string_to_array(in_token, '.');
  settled record;
  name text;
begin
  if in_token is null or in_token !~ '^\d{1,18}\.\d{1,9}\.-?\d{1,19}$' then
    raise exception 'this is no token of a job: "%"', coalesce(in_token, '') using errcode = 'invalid_parameter_value';
  elsif in_delay < interval '0' then
    raise exception 'the delay must not be negative, not %', in_delay using errcode = 'invalid_parameter_value';
  elsif extract(epoch from in_delay) > 3162240000 then
    raise exception 'the delay must be at most 100 years' using errcode = 'invalid_parameter_value';
  elsif pg_catalog.octet_length(in_result::text) > 16777216 then
    raise exception 'the results have more than 16 MiB' using errcode = 'invalid_parameter_value';
  end if;
  select job.queue into name from {schema}.job where job.id = parts[1]::bigint;
  select * into settled
  from {schema}.settle_jobs(array[parts[1]::bigint], array[parts[2]::int], array[parts[3]::bigint], array[in_outcome],
    array[extract(epoch from in_delay)::double precision], array[in_code], array[in_message], array[null::double precision],
    array[pg_catalog.convert_to(in_result::text, 'UTF8')], extract(epoch from in_keep)::double precision, null);
  if settled.said <> 'recorded' then
    raise exception 'the lease of job % is lost: it has ended, or another worker has it', parts[1]
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  if settled.state = 'scheduled' then
    perform {schema}.announce_jobs(array[name]);
  end if;
end
$reveille$;

comment on function {schema}.settle_job(text, text, interval, text, text, json, interval)
  is 'Reveille: settles a job that is held, in the caller''s transaction';
