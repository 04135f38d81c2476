-- As messages/settle/rest.sql, within a transaction that has pushes: its commit always waits for
-- the disk.
-- locks:  the cursors, ascending
select settled.item, settled.said, settled.released, settled.dead, settled.more, settled.due_s, settled.before
from {schema}.settle($1::int[], $2::int[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::boolean[]) as settled
