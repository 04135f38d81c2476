-- The queues whose name is after $1, of namespace $2 and task $3 and with $4 in their name (each
-- null for any), by name, $5 at most; with the columns of functions/described.sql.
-- locks:  nothing
select described.*
from {schema}.queue
cross join lateral {schema}.described(queue) as described
where queue.name > $1::text
  and ($2::text is null or queue.namespace = $2)
  and ($3::text is null or queue.task = $3)
  and ($4::text is null or strpos(queue.name, $4) > 0)
order by queue.name
limit $5
