-- Make node $1, called $2, known. Committed before it listens, and it looks only after that:
-- whoever pushes either sees this row, or has committed before the first look.
-- Writes nothing in a session that lacks the settings of our login: it is a pooler's, and belongs
-- to everybody. LISTEN and SET would stay in it, and of notifications we would get none but those
-- we send ourselves.
-- locks: its own row of node
insert into {schema}.node (id, name, beat_at)
select $1, $2, clock_timestamp()
where current_setting('plan_cache_mode') = 'force_generic_plan'
on conflict (id) do update set beat_at = excluded.beat_at
