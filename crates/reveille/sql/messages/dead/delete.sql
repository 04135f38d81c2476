-- Delete the dead letters $1.
-- locks:  the letters, ascending
with doomed as materialized (
  select dead_letter.id
  from {schema}.dead_letter
  where dead_letter.id = any ($1::bigint[])
  order by dead_letter.id
  for update
)
delete from {schema}.dead_letter
where dead_letter.id in (select doomed.id from doomed)
