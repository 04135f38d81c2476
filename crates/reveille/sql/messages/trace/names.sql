-- The names of traces, the latest first: at most $1, after skipping $2; with the total.
-- locks:  nothing
select named.name, count(*) as traces, count(distinct (trace.partition, trace.transaction_id)) as messages,
       max(trace.at) as last_at, count(*) over () as total
from {schema}.trace
cross join lateral unnest(trace.names) as named (name)
group by named.name
order by max(trace.at) desc, named.name
limit $1::bigint
offset $2::bigint
