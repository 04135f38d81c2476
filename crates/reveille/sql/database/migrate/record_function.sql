-- Note that function $1 has the text with hash $2, of release $3.
-- locks: the row of the function
insert into {schema}.function (name, hash, release)
values ($1, $2, $3)
on conflict (name) do update
set hash = excluded.hash,
    release = excluded.release,
    replaced_at = clock_timestamp()
