-- Turn the switch $1 on or off, as $2 says.
-- locks:  the switch's row
update {schema}.switch
set engaged = $2::boolean, changed_at = clock_timestamp()
where switch.name = $1::text
