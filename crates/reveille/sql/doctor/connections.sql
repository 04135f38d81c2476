-- Connections allowed, reserved for superusers, and in use.
-- locks: nothing
select
  current_setting('max_connections')::int8 as allowed,
  current_setting('superuser_reserved_connections')::int8
    + coalesce(current_setting('reserved_connections', true)::int8, 0) as reserved,
  (select count(*) from pg_stat_activity where backend_type = 'client backend') as used
