-- Make node $1, called $2, known. Committed before it listens, and it looks only after that: whoever pushes either sees
-- this row, or has committed before the first look.
-- locks: its own row of node
insert into {schema}.node (id, name, beat_at)
values ($1, $2, clock_timestamp())
on conflict (id) do update set beat_at = excluded.beat_at
