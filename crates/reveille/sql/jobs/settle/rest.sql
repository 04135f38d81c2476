-- Settle jobs in every way: see the function.
-- locks:  the jobs ascending
-- fences: epoch and nonce
select
  item,
  said,
  state,
  due_s
from {schema}.settle_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
order by item
