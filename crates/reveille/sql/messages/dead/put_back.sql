-- Put the dead letters $1 back: see functions/redrive.sql.
-- locks:  the heads, ascending; the letters
select redriven.queue, redriven.partition, redriven.messages
from {schema}.redrive($1::bigint[]) as redriven
