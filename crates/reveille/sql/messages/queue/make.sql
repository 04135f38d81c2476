-- Create the partitions $2 of the queues $1 (parallel arrays) if they do not exist, and return
-- those whose queue was not deleted meanwhile.
-- locks:  the queues' rows for key share, by name; nothing that exists besides
select made.partition as id, made.queue, made.name, made.uid, made.queue_name
from {schema}.ensure_all($1::text[], $2::text[]) as made
