-- The server's version, as it reports it at login.
-- locks: nothing
select current_setting('server_version')
