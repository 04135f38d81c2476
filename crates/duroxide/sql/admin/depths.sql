-- How many messages and activities are not locked.
-- locks:  nothing
select
  (
    select count(*)
    from {schema}.message m
    where not exists (
      select
      from {schema}.mailbox b
      where b.instance_id = m.instance_id
        and b.lock_token = m.lock_token
        and b.locked_until > clock_timestamp()
    )
  ) as messages,
  (select count(*) from {schema}.activity where lock_token is null or due_at <= clock_timestamp()) as activities
