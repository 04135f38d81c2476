-- Remove node $1: it needs no more hints.
-- locks: its own row of node
delete from {schema}.node
where id = $1
