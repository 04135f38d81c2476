-- Take the chore that has been due longest, among those named $2, and say that it is due again
-- after the seconds $1.
-- locks:  the chore's row, skipping locked ones
with due as materialized (
  select chore.name
  from {schema}.chore
  where chore.next_at <= clock_timestamp() and chore.name = any ($2::text[])
  order by chore.next_at
  limit 1
  for update skip locked
)
update {schema}.chore
set next_at = clock_timestamp() + make_interval(secs => $1::float8)
from due
where chore.name = due.name
returning chore.name, chore.mark
