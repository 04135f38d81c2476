-- Copy jobs whose bodies were copied before.
-- locks:  nothing that exists
copy {schema}.job (id, due_at, max_attempts, priority, queue)
from stdin (format binary)
