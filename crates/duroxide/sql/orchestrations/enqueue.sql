-- Add message $2 for instance $1, visible after $3 seconds, or at $4 (seconds since 1970) if that
-- is given. A start ($5) makes the mailbox, if there is none; an event of the queue ($6) without a
-- mailbox is dropped. Returns whether it was added, and in how many seconds it is visible.
-- locks:  for a start the mailbox
with begun as (
  insert into {schema}.mailbox (instance_id, known)
  select $1, true
  where $5
  on conflict (instance_id) do update
  set known = true
), added as (
  insert into {schema}.message (instance_id, work_item, visible_at)
  select
    $1,
    $2,
    coalesce(to_timestamp($4), clock_timestamp() + make_interval(secs => $3))
  where not $6
     or exists (select from {schema}.mailbox where instance_id = $1 and known)
  returning visible_at
)
select extract(epoch from visible_at - clock_timestamp())::float8 as due_s
from added
