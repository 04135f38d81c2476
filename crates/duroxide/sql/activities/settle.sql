-- Remove the activity under token $1, if its lock has not ended, and add its outcome $3 to the
-- messages of instance $2 (no outcome if null). Returns nothing if the token is not held.
-- `relay.sql` has the same steps.
-- locks:  the activity, its session
-- fences: the token
with done as (
  delete from {schema}.activity
  where lock_token = $1
    and due_at > clock_timestamp()
  returning session_id
), touched as (
  update {schema}.session s
  set last_activity_at = clock_timestamp()
  from done
  where s.session_id = done.session_id
    and s.locked_until > clock_timestamp()
), added as (
  insert into {schema}.message (instance_id, work_item, visible_at)
  select
    $2,
    $3,
    clock_timestamp()
  from done
  where $3::text is not null
)
select true as settled
from done
