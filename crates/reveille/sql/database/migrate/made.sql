-- Everything our migrations made, whether it still exists or not.
-- locks: nothing
select distinct unnest(made) as object
from {schema}.migration
