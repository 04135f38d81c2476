-- Make the queue $1 and its partitions $2 if they are not there, and return them.
-- locks:  the queue's row for key share; nothing that exists besides
select made.queue, made.partition, made.name, made.uid
from {schema}.ensure($1::text, $2::text[]) as made
