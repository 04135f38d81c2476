-- Give back the turn of instance $1 under token $2; its messages are visible again after $3
-- seconds, or at once if null. With $4 the attempt does not count. Returns nothing if the token is
-- not the mailbox's. All messages become visible at one moment: a turn that began between two of
-- them would see the first without the second.
-- locks:  the mailbox, then its tagged messages
-- fences: the token; an expired lock may still be given back by its last holder
with clock as materialized (
  select clock_timestamp() as now
), released as (
  update {schema}.mailbox
  set
    lock_token = null,
    locked_until = null
  where instance_id = $1
    and lock_token = $2
  returning instance_id
), returned as (
  update {schema}.message m
  set
    lock_token = null,
    visible_at = case
      when $3::float8 is null then m.visible_at
      else clock.now + make_interval(secs => $3)
    end,
    attempt_count = case when $4 then greatest(m.attempt_count - 1, 0) else m.attempt_count end
  from released
  cross join clock
  where m.instance_id = released.instance_id
    and m.lock_token = $2
)
select true as released
from released
