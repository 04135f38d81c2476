-- Add node $1, called $2. The row is committed before the node listens, and its first claim round
-- comes after that: a producer either sees this row, or has committed before that round.
-- Writes nothing in a session that lacks the settings of our login: it is a pooler's, and shared.
-- LISTEN and SET would stay in it, and only our own notifications would arrive.
-- locks: its own row of node
insert into {schema}.node (id, name, beat_at)
select $1, $2, clock_timestamp()
where current_setting('plan_cache_mode') = 'force_generic_plan'
on conflict (id) do update set beat_at = excluded.beat_at
