-- Extend the leases $1 (nonces), in every partition, to $2 seconds from now (parallel; null for the
-- lease time of the queue); never shortens them. Where $3 (parallel), an ended lease is refused.
-- locks:  the cursors, ascending
-- plan:   index scan using cursor_nonce
-- fences: by nonce
with asked as (
  select * from unnest($1::uuid[], $2::float8[], $3::boolean[]) as asked (nonce, seconds, strict)
), held as materialized (
  select cursor.partition, cursor.grp, asked.nonce,
         clock_timestamp() + coalesce(make_interval(secs => asked.seconds), queue.lease) as until
  from asked
  join {schema}.cursor on cursor.nonce = asked.nonce and cursor.lease_until is not null
  join {schema}.partition_row on partition_row.partition = cursor.partition
  join {schema}.queue on queue.id = partition_row.queue
  where cursor.nonce = any ($1::uuid[])
    and (not asked.strict or cursor.lease_until > clock_timestamp())
  order by cursor.partition, cursor.grp
  for update of cursor
), wanted as (
  select held.partition, held.grp, held.nonce, max(held.until) as until
  from held
  group by held.partition, held.grp, held.nonce
)
update {schema}.cursor
set lease_until = greatest(cursor.lease_until, wanted.until),
    due_at = greatest(cursor.lease_until, wanted.until)
from wanted
where cursor.partition = wanted.partition
  and cursor.grp = wanted.grp
  and cursor.nonce = wanted.nonce
  and cursor.lease_until is not null
returning cursor.nonce, cursor.partition, cursor.grp,
          extract(epoch from cursor.lease_until - clock_timestamp())::float8 as lease_s, cursor.lease_until
