-- Delete instances $1 with everything that belongs to them, all or none: none if one of them runs
-- (unless $2), none if one of them has a child that is not among them. Turns in progress find their
-- mailbox gone.
-- locks:  the mailboxes in the order of their names, then everything of the instances
with turns as materialized (
  select instance_id
  from {schema}.mailbox
  where instance_id = any ($1)
  order by instance_id
  for update
), running as materialized (
  select i.instance_id
  from {schema}.instance i
  join {schema}.execution e on e.instance_id = i.instance_id and e.execution_id = i.current_execution_id
  where i.instance_id = any ($1)
    and e.status = 'Running'
    and not $2
  order by i.instance_id
  limit 1
), orphaned as materialized (
  select
    instance_id,
    parent_instance_id
  from {schema}.instance
  where parent_instance_id = any ($1)
    and instance_id <> all ($1)
  limit 1
), doomed as materialized (
  select distinct named.instance_id
  from unnest($1::text[]) as named (instance_id)
  cross join (select count(*) from turns) as locked
  where not exists (select from running)
    and not exists (select from orphaned)
), instances as (
  delete from {schema}.instance t using doomed where t.instance_id = doomed.instance_id returning 1
), executions as (
  delete from {schema}.execution t using doomed where t.instance_id = doomed.instance_id returning 1
), events as (
  delete from {schema}.history t using doomed where t.instance_id = doomed.instance_id returning 1
), messages as (
  delete from {schema}.message t using doomed where t.instance_id = doomed.instance_id returning 1
), activities as (
  delete from {schema}.activity t using doomed where t.instance_id = doomed.instance_id returning 1
), stored as (
  delete from {schema}.kv_store t using doomed where t.instance_id = doomed.instance_id
), changed as (
  delete from {schema}.kv_delta t using doomed where t.instance_id = doomed.instance_id
), mailboxes as (
  delete from {schema}.mailbox t using doomed where t.instance_id = doomed.instance_id
)
select
  (select instance_id from running) as running,
  (select instance_id from orphaned) as orphan,
  (select parent_instance_id from orphaned) as parent,
  (select count(*) from instances) as instances,
  (select count(*) from executions) as executions,
  (select count(*) from events) as events,
  (select count(*) from messages) + (select count(*) from activities) as messages
