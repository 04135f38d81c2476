-- Forget that the group $1 was ever registered.
-- locks:  the group's row
delete from {schema}.consumer_group
where consumer_group.id = $1::int
