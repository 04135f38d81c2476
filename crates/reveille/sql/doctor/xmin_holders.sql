-- Sessions, prepared transactions and replication slots that have kept dead rows from being removed
-- for more than $1 seconds, the longest first, at most $2.
-- locks: nothing
with holders as (
  select
    'session' as kind,
    pid || coalesce(' (' || nullif(application_name, '') || ')', '') as who,
    extract(epoch from clock_timestamp() - xact_start)::float8 as seconds
  from pg_stat_activity
  where backend_xmin is not null
    and backend_type = 'client backend'
    and pid <> pg_backend_pid()
  union all
  select
    'prepared transaction',
    gid,
    extract(epoch from clock_timestamp() - prepared)::float8
  from pg_prepared_xacts
  where database = current_database()
  union all
  -- A slot shows how many transactions it is behind, not since when: it counts if it holds rows
  -- while unused.
  select
    'replication slot',
    slot_name,
    case when active then null else 'infinity'::float8 end
  from pg_replication_slots
  where coalesce(xmin, catalog_xmin) is not null
)
select
  kind,
  who,
  seconds
from holders
where seconds >= $1
order by seconds desc, kind, who
limit $2
