-- Set whether queue $1 is paused ($2) and whether it is quiet ($3); null changes nothing.
-- locks:  the queue's row
insert into {schema}.job_queue (name, paused, quiet)
values ($1, coalesce($2, false), coalesce($3, false))
on conflict (name) do update
set
  paused = coalesce($2, job_queue.paused),
  quiet = coalesce($3, job_queue.quiet)
