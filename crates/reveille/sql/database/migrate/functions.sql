-- The functions as they were last replaced.
-- locks: nothing
select
  name,
  hash,
  release
from {schema}.function
order by name
