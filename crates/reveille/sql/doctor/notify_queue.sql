-- How full the queue of notifications is, from 0 to 1.
-- locks: nothing
select pg_notification_queue_usage() as usage
