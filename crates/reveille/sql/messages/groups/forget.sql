-- Delete the row of the group $1.
-- locks:  the group's row
delete from {schema}.consumer_group
where consumer_group.id = $1::int
