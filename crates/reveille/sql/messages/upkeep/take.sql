-- Take the upkeep task that has been due longest, among those named $2, and make it due again after
-- $1 seconds.
-- locks:  the task's row, skipping locked ones
with due as materialized (
  select upkeep.name
  from {schema}.upkeep
  where upkeep.next_at <= clock_timestamp() and upkeep.name = any ($2::text[])
  order by upkeep.next_at
  limit 1
  for update skip locked
)
update {schema}.upkeep
set next_at = clock_timestamp() + make_interval(secs => $1::float8)
from due
where upkeep.name = due.name
returning upkeep.name, upkeep.mark
