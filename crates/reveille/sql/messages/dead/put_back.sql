-- Redrive the dead letters $1: see functions/redrive.sql.
-- locks:  the partition rows, ascending; the letters
select redriven.queue, redriven.partition, redriven.messages
from {schema}.redrive($1::bigint[]) as redriven
