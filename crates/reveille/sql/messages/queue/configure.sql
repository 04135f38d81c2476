-- Make the queue $1, or change it: what is null stays as it is or, if $2 says to replace, becomes
-- what a new queue has. Namespace $3 and task $4 are the parts of a dotted name when they are not
-- given; times in seconds; $24 is kept as it is.
-- locks:  the queue's row
insert into {schema}.queue as held
  (name, namespace, task, lease, retry_limit, retry_delay, max_deliveries, delay, window_buffer, ttl, max_size,
   priority, retention, completed_retention, max_wait, dedup_window, dead_letters, encrypted,
   require_lease, durable_acks, quiet, paused, echo)
values (
  $1::text,
  coalesce($3::text, case when $1 like '%.%' then split_part($1, '.', 1) else '' end),
  coalesce($4::text, case when $1 like '%.%' then substr($1, strpos($1, '.') + 1) else '' end),
  make_interval(secs => coalesce($5::float8, 60)),
  coalesce($6::int, 3),
  make_interval(secs => coalesce($7::float8, 0)),
  coalesce($8::int, 25),
  make_interval(secs => coalesce($9::float8, 0)),
  make_interval(secs => coalesce($10::float8, 0)),
  make_interval(secs => coalesce($11::float8, 0)),
  coalesce($12::bigint, 0),
  coalesce($13::int, 0),
  make_interval(secs => coalesce($14::float8, 0)),
  make_interval(secs => coalesce($15::float8, 0)),
  make_interval(secs => coalesce($16::float8, 0)),
  make_interval(secs => coalesce($17::float8, 3600)),
  coalesce($18::boolean, true),
  coalesce($19::boolean, false),
  coalesce($20::boolean, false),
  coalesce($21::boolean, true),
  coalesce($22::boolean, false),
  coalesce($23::boolean, false),
  coalesce($24::text::jsonb, '{}')
)
on conflict (name) do update
set namespace = case when $2::boolean or $3::text is not null then excluded.namespace else held.namespace end,
    task = case when $2 or $4::text is not null then excluded.task else held.task end,
    lease = case when $2 or $5::float8 is not null then excluded.lease else held.lease end,
    retry_limit = case when $2 or $6::int is not null then excluded.retry_limit else held.retry_limit end,
    retry_delay = case when $2 or $7::float8 is not null then excluded.retry_delay else held.retry_delay end,
    max_deliveries = case when $2 or $8::int is not null then excluded.max_deliveries else held.max_deliveries end,
    delay = case when $2 or $9::float8 is not null then excluded.delay else held.delay end,
    window_buffer = case when $2 or $10::float8 is not null then excluded.window_buffer else held.window_buffer end,
    ttl = case when $2 or $11::float8 is not null then excluded.ttl else held.ttl end,
    max_size = case when $2 or $12::bigint is not null then excluded.max_size else held.max_size end,
    priority = case when $2 or $13::int is not null then excluded.priority else held.priority end,
    retention = case when $2 or $14::float8 is not null then excluded.retention else held.retention end,
    completed_retention = case when $2 or $15::float8 is not null then excluded.completed_retention
                               else held.completed_retention end,
    max_wait = case when $2 or $16::float8 is not null then excluded.max_wait else held.max_wait end,
    dedup_window = case when $2 or $17::float8 is not null then excluded.dedup_window else held.dedup_window end,
    dead_letters = case when $2 or $18::boolean is not null then excluded.dead_letters else held.dead_letters end,
    encrypted = case when $2 or $19::boolean is not null then excluded.encrypted else held.encrypted end,
    require_lease = case when $2 or $20::boolean is not null then excluded.require_lease else held.require_lease end,
    durable_acks = case when $2 or $21::boolean is not null then excluded.durable_acks else held.durable_acks end,
    quiet = case when $2 or $22::boolean is not null then excluded.quiet else held.quiet end,
    paused = case when $2 or $23::boolean is not null then excluded.paused else held.paused end,
    echo = case when $2 then excluded.echo else held.echo || excluded.echo end
returning held.id, held.uid, held.name, held.namespace, held.task, extract(epoch from held.created_at)::float8 as created_s,
          extract(epoch from held.lease)::float8 as lease, held.retry_limit,
          extract(epoch from held.retry_delay)::float8 as retry_delay, held.max_deliveries,
          extract(epoch from held.delay)::float8 as delay, extract(epoch from held.window_buffer)::float8 as window_buffer,
          extract(epoch from held.ttl)::float8 as ttl, held.max_size, held.priority,
          extract(epoch from held.retention)::float8 as retention,
          extract(epoch from held.completed_retention)::float8 as completed_retention,
          extract(epoch from held.max_wait)::float8 as max_wait, extract(epoch from held.dedup_window)::float8 as dedup_window,
          held.dead_letters, held.encrypted, held.require_lease, held.durable_acks, held.quiet, held.paused,
          held.echo::text as echo,
          held.xmax = 0 as made
