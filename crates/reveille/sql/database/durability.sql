-- The settings that decide what a commit is worth.
-- locks: nothing
select
  name,
  setting
from pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')
order by name
