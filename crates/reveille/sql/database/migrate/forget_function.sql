-- Forget function $1.
-- locks: the row of the function
delete from {schema}.function
where name = $1
