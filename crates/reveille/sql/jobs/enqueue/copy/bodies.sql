-- Copy the bodies of jobs.
-- locks:  nothing that exists
copy {schema}.job_body (id, kind, queue, priority, run_at, max_attempts, timeout_ms, backoff, tags, metadata, args)
from stdin (format binary)
