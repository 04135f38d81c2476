-- Ack whole leases: $1 partition, $2 group, $3 nonce, $4 the last sequence of the lease, $5 whether
-- to refuse an ended lease (parallel arrays, each lease once). The commit waits for the disk unless
-- every queue concerned has relaxed acks. Leases that were lost, or are acked only in part, are not
-- returned: these go to messages/settle/rest.sql.
-- locks:  the cursors, ascending
-- plan:   index scan backward using cursor_place
-- fences: by the nonce of the claim
with acked as (
  select *
  from unnest($1::int[], $2::int[], $3::uuid[], $4::bigint[], $5::boolean[])
    as acked (partition, grp, nonce, through, strict)
  order by acked.partition, acked.grp
), held as materialized (
  select seen.tid, cursor.partition, cursor.grp, acked.through, cursor.committed as before
  from acked
  cross join lateral {schema}.cursor_of(acked.partition, acked.grp) as seen
  cross join lateral (
    select cursor.partition, cursor.grp, cursor.committed
    from {schema}.cursor
    where cursor.ctid = seen.tid
      and cursor.nonce = acked.nonce
      and cursor.lease_until is not null
      and cursor.leased_through = acked.through
      and (not acked.strict or cursor.lease_until > clock_timestamp())
    for update
  ) as cursor
), completed as (
  update {schema}.cursor
  set committed = held.through,
      upto = greatest(cursor.upto, partition_row.next_seq - 1),
      lease_until = null,
      failures = 0,
      deliveries = 0,
      -- Never cleared while this cursor, on the row we hold, was marked ready for more: rule R3 of
      -- docs/messages.md.
      due_at = case when greatest(cursor.upto, partition_row.next_seq - 1) > held.through then clock_timestamp() end
  from held
  cross join lateral {schema}.partition_row_of(held.partition) as partition_row
  where cursor.ctid = held.tid
    and cursor.lease_until is not null
    and cursor.leased_through = held.through
  returning cursor.partition, cursor.grp, partition_row.queue, cursor.due_at is not null as more, held.before
), disk as materialized (
  select set_config('synchronous_commit',
                    case when bool_or(queue.durable_acks) then current_setting('synchronous_commit') else 'off' end,
                    true) as waits
  from {schema}.queue
  where queue.id in (select completed.queue from completed)
)
select completed.partition, completed.grp, completed.more, completed.before
from completed, disk
where disk.waits is not null
