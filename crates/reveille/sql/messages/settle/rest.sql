-- Settle leases in every way but as a whole: see functions/settle.sql. $1 partitions, $2 groups, $3
-- nonces, $4 throughs, $5 outcomes, $6 errors, $7 strict. The commit waits for the disk unless
-- every queue concerned has relaxed acks.
-- locks:  the cursors, ascending
with settled as materialized (
  select settled.*
  from {schema}.settle($1::int[], $2::int[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::boolean[]) as settled
), disk as materialized (
  select set_config('synchronous_commit',
                    case when bool_or(settled.durable) is false then 'off' else current_setting('synchronous_commit') end,
                    true) as waits
  from settled
)
select settled.item, settled.said, settled.released, settled.dead, settled.more, settled.due_s, settled.before
from settled, disk
where disk.waits is not null
