-- Record for the upkeep task $1 where it stopped, $2, and what it did, $3 (JSON as text); with $4
-- it is due again at once.
-- locks:  the task's row
update {schema}.upkeep
set mark = $2::bigint,
    done_at = clock_timestamp(),
    figures = $3::text::jsonb,
    next_at = case when $4::boolean then clock_timestamp() else upkeep.next_at end
where upkeep.name = $1::text
