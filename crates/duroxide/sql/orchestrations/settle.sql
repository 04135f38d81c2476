-- Commit the turn of instance $1 under token $2, as a whole, if the lock is still ours; otherwise
-- change nothing.
--
-- The turn:
--   $1  instance
--   $2  token
--   $3  execution
--   $4 $5 $6  name, version and parent of the instance; without name or version it keeps its own
--   $7  the version of duroxide that the execution is pinned to; null keeps it, except for a new
--       execution, which is then pinned to none
--   $8 $9  status and output of the execution; null while it runs
--   $10  whether the execution ended
--   $11 $12  custom status, and whether it changed
-- Events, added to the history of the execution:
--   $13  id
--   $14  event
-- Changed values:
--   $15  key
--   $16  value; null deletes it
--   $17  when it was set, in ms
--   $18  whether all other values are deleted
-- Activities to add:
--   $19 $20 $21  instance, execution, id
--   $22 $23  session and tag
--   $24  work item
-- Activities to cancel:
--   $25 $26 $27  instance, execution, id
-- Messages to send:
--   $28  instance
--   $29  work item
--   $30  when it is visible, in seconds since 1970; null for now
--   $31  whether it starts the instance
--   $32  whether it is an event of the queue, which only an instance that exists gets
--
-- Returns whether the lock was held; whether an earlier try with this token has succeeded; whether
-- messages of the instance are left; and the seconds until the first of the sent ones is visible.
--
-- Values. While an execution runs, what it changed is in `kv_delta`, where null is a deleted key.
-- At its end that is merged into `kv_store`.
--
-- Steps, with the table that each writes:
--   held                 locks the mailbox; without it no step does anything
--   unlocked             mailbox: no token, no lock; notes the token of the turn
--   read_messages        message: deletes those that the turn has read
--   named_instance       instance: adds or changes it, if the turn says name and version,
--   unnamed_instance     instance: or else changes it
--   execution_noted      execution: adds or changes it
--   events_added         history
--   changed_values       the changed values, and all others as null if they are deleted
--   final_values         at the end: these, and those of kv_delta that this turn left
--   delta_noted          kv_delta: before the end, the changed values
--   values_stored        kv_store: at the end, the values
--   values_removed       kv_store: and without those that are null
--   delta_emptied        kv_delta: at the end
--   activities_added     activity
--   activities_removed   activity
--   sent_messages        the messages to send
--   mailboxes_known      mailbox: adds those of instances that are started
--   messages_added       message: all but events for an instance that does not exist
-- locks:  the mailbox of $1, then what belongs to it; new mailboxes in the order of their names
-- fences: the token, under the mailbox's lock; settled_token keeps it, so that a second try finds
--         that the first one succeeded
with clock as materialized (
  select clock_timestamp() as now
), held as materialized (
  select instance_id
  from {schema}.mailbox
  where instance_id = $1
    and lock_token = $2
    and locked_until > clock_timestamp()
  for no key update
), unlocked as (
  update {schema}.mailbox b
  set
    lock_token = null,
    locked_until = null,
    settled_token = $2,
    known = true,
    pinned = case
      when $7::bigint is not null then $7
      when $3 > (select current_execution_id from {schema}.instance where instance_id = $1) then null
      else b.pinned
    end
  from held
  where b.instance_id = held.instance_id
), read_messages as (
  delete from {schema}.message m
  using held
  where m.instance_id = held.instance_id
    and m.lock_token = $2
), named_instance as (
  insert into {schema}.instance as i (
    instance_id, name, version, current_execution_id, parent_instance_id, custom_status, custom_status_version,
    settled_token
  )
  select
    held.instance_id,
    $4,
    $5,
    $3,
    $6,
    case when $12 then $11 end,
    case when $12 then 1 else 0 end,
    $2
  from held
  where $4::text is not null
    and $5::text is not null
  on conflict (instance_id) do update
  set
    name = excluded.name,
    version = excluded.version,
    current_execution_id = greatest(i.current_execution_id, excluded.current_execution_id),
    parent_instance_id = coalesce(i.parent_instance_id, excluded.parent_instance_id),
    custom_status = case when $12 then excluded.custom_status else i.custom_status end,
    custom_status_version = i.custom_status_version + excluded.custom_status_version,
    settled_token = excluded.settled_token,
    updated_at = clock_timestamp()
), unnamed_instance as (
  update {schema}.instance i
  set
    current_execution_id = greatest(i.current_execution_id, $3),
    custom_status = case when $12 then $11 else i.custom_status end,
    custom_status_version = i.custom_status_version + case when $12 then 1 else 0 end,
    settled_token = $2,
    updated_at = clock_timestamp()
  from held
  where i.instance_id = held.instance_id
    and ($4::text is null or $5::text is null)
), execution_noted as (
  insert into {schema}.execution as e (
    instance_id, execution_id, status, output, event_count, completed_at
  )
  select
    held.instance_id,
    $3,
    coalesce($8, 'Running'),
    $9,
    cardinality($13::bigint[]),
    case when $8::text is not null then clock_timestamp() end
  from held
  on conflict (instance_id, execution_id) do update
  set
    status = coalesce($8, e.status),
    output = case when $8::text is not null then excluded.output else e.output end,
    event_count = e.event_count + excluded.event_count,
    completed_at = coalesce(excluded.completed_at, e.completed_at)
), events_added as (
  insert into {schema}.history (instance_id, execution_id, event_id, event)
  select
    held.instance_id,
    $3,
    new.event_id,
    new.event
  from held
  cross join unnest($13::bigint[], $14::text[]) as new (event_id, event)
), changed_values as materialized (
  select
    new.key,
    new.value,
    new.updated_ms
  from held
  cross join unnest($15::text[], $16::text[], $17::bigint[]) as new (key, value, updated_ms)
  union all
  select
    old.key,
    null,
    (extract(epoch from clock.now) * 1000)::bigint
  from held
  cross join clock
  cross join (
    select key from {schema}.kv_store where instance_id = $1
    union
    select key from {schema}.kv_delta where instance_id = $1
  ) as old
  where $18
    and old.key <> all ($15::text[])
), final_values as materialized (
  select
    key,
    value,
    updated_ms
  from changed_values
  where $10
  union all
  select
    d.key,
    d.value,
    d.updated_ms
  from held
  join {schema}.kv_delta d on d.instance_id = held.instance_id
  where $10
    and not exists (select from changed_values where changed_values.key = d.key)
), delta_noted as (
  insert into {schema}.kv_delta (instance_id, key, value, updated_ms)
  select
    $1,
    key,
    value,
    updated_ms
  from changed_values
  where not $10
  on conflict (instance_id, key) do update
  set
    value = excluded.value,
    updated_ms = excluded.updated_ms
), values_stored as (
  insert into {schema}.kv_store (instance_id, key, value, updated_ms)
  select
    $1,
    key,
    value,
    updated_ms
  from final_values
  where value is not null
  on conflict (instance_id, key) do update
  set
    value = excluded.value,
    updated_ms = excluded.updated_ms
), values_removed as (
  delete from {schema}.kv_store k
  using final_values
  where k.instance_id = $1
    and k.key = final_values.key
    and final_values.value is null
), delta_emptied as (
  delete from {schema}.kv_delta d
  using held
  where d.instance_id = held.instance_id
    and $10
), activities_added as (
  insert into {schema}.activity (instance_id, execution_id, activity_id, session_id, tag, work_item, due_at)
  select
    new.instance_id,
    new.execution_id,
    new.activity_id,
    new.session_id,
    new.tag,
    new.work_item,
    clock_timestamp()
  from held
  cross join unnest($19::text[], $20::bigint[], $21::bigint[], $22::text[], $23::text[], $24::text[])
    as new (instance_id, execution_id, activity_id, session_id, tag, work_item)
), activities_removed as (
  delete from {schema}.activity a
  using held
  cross join unnest($25::text[], $26::bigint[], $27::bigint[]) as gone (instance_id, execution_id, activity_id)
  where a.instance_id = gone.instance_id
    and a.execution_id = gone.execution_id
    and a.activity_id = gone.activity_id
), sent_messages as materialized (
  select
    new.instance_id,
    new.work_item,
    coalesce(to_timestamp(new.visible_at), clock.now) as visible_at,
    new.is_start,
    new.is_event,
    new.place
  from held
  cross join clock
  cross join unnest($28::text[], $29::text[], $30::float8[], $31::boolean[], $32::boolean[])
    with ordinality as new (instance_id, work_item, visible_at, is_start, is_event, place)
), mailboxes_known as (
  insert into {schema}.mailbox (instance_id, known)
  select distinct
    instance_id,
    true
  from sent_messages
  where is_start
    and instance_id <> $1
  order by 1
  on conflict (instance_id) do update
  set known = true
), messages_added as (
  insert into {schema}.message (instance_id, work_item, visible_at)
  select
    s.instance_id,
    s.work_item,
    s.visible_at
  from sent_messages s
  where not s.is_event
     or s.instance_id = $1
     or exists (select from {schema}.mailbox b where b.instance_id = s.instance_id and b.known)
  order by s.place
)
select
  exists (select from held) as held,
  exists (select from {schema}.mailbox where instance_id = $1 and settled_token = $2) as already,
  exists (select from {schema}.message where instance_id = $1 and lock_token is distinct from $2) as left_over,
  (select extract(epoch from min(visible_at) - clock_timestamp())::float8 from sent_messages) as due_s
