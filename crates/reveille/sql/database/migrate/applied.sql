-- The migrations that were applied, oldest first.
-- locks: nothing
select
  version,
  name,
  checksum,
  applied_at
from {schema}.migration
order by version
