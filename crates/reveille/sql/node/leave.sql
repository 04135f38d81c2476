-- Node $1 leaves; nobody need tell it anything any more.
-- locks: its own row of node
delete from {schema}.node
where id = $1
