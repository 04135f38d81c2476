-- Create the queue and its partitions if they do not exist, and return them: see ensure_all.
-- locks: the queue's row for key share; nothing that exists besides
create or replace function {schema}.ensure(in_queue text, in_partitions text[])
returns table (queue int, partition int, name text, uid uuid)
language plpgsql
as $reveille$
#variable_conflict use_column
declare
  names text[] := array(select distinct given.name from pg_catalog.unnest(in_partitions) as given (name));
begin
  return query
  select made.queue, made.partition, made.name, made.uid
  from {schema}.ensure_all(pg_catalog.array_fill(in_queue, array[pg_catalog.cardinality(names)]), names) as made;
end
$reveille$;

comment on function {schema}.ensure(text, text[]) is 'Reveille: creates a queue and partitions';
