-- Note that node $1, called $2, lives; prove its link by an echo $4 on channel $3; return the other
-- nodes with a heartbeat within the last $5 seconds, and in the row without a number how many
-- seconds ago the last heartbeat of this one was, null for never. The surveys of the sources
-- follow, each as one more `union all`.
-- locks: its own row of node; rows of nodes silent for twice that long (skip locked)
with beat as (
  insert into {schema}.node (id, name, beat_at)
  values ($1, $2, clock_timestamp())
  on conflict (id) do update set beat_at = excluded.beat_at
),
forgotten as (
  select id
  from {schema}.node
  where id <> $1
    and beat_at < clock_timestamp() - 2 * make_interval(secs => $5)
  for update skip locked
),
forget as (
  delete from {schema}.node
  using forgotten
  where node.id = forgotten.id
),
echo as materialized (
  select pg_notify($3, $4)
),
before as (
  select extract(epoch from clock_timestamp() - beat_at)::float8 as silent_s
  from {schema}.node
  where id = $1
)
select -1 as source, null::int8 as number, (select silent_s from before) as due_s
from echo
union all
select -1, id, null
from {schema}.node
where id <> $1
  and beat_at >= clock_timestamp() - make_interval(secs => $5)
