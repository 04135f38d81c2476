-- Settle leases: parallel arrays, settled in the order of (partition, group), so that two callers
-- cannot deadlock; settlements of one lease in the order given.
--   throughs   the last completed sequence
--   outcomes   of the message after that: 'completed' (there is none), 'failed' (charged), 'retry'
--              (uncharged), 'dlq' (a dead letter at once), 'release' (as if never claimed; through
--              is ignored)
--   nonces     the lease; null for the lease that the group has
--   strict     refuses an ended lease
-- Returns for each settlement:
--   item       its number, from 1
--   said       'settled'; 'already' (a repeat, or the lease was given back before); 'passed' (not
--              completed, but it is settled already); 'lost' (another claim, or none); 'expired';
--              'outside' (not within the lease)
--   durable    whether the queue wants the commit to wait for the disk
-- locks: cursors ascending
create or replace function {schema}.settle(
  partitions int[], groups int[], nonces uuid[], throughs bigint[], outcomes text[], errors text[], strict boolean[]
)
returns table (
  item int, said text, released boolean, dead boolean, more boolean, due_s double precision, before bigint,
  committed bigint, durable boolean
)
language plpgsql
as $reveille$
declare
  asked record;
  held record;
  top record;
  rules {schema}.queue;
  passed bigint;
  charged int;
  due timestamptz;
begin
  for asked in
    select given.*
    from unnest(partitions, groups, nonces, throughs, outcomes, errors, strict) with ordinality
      as given (partition, grp, nonce, through, outcome, error, strictly, place)
    order by given.partition, given.grp, given.place
  loop
    item := asked.place;
    released := false;
    dead := false;
    more := false;
    due_s := null;
    durable := null;
    -- From the newest version back: while a transaction elsewhere is held open, no version goes
    -- away.
    select locked.* into held
    from {schema}.cursor_of(asked.partition, asked.grp) as newest
    cross join lateral (
      select cursor.*, cursor.ctid as tid
      from {schema}.cursor
      where (cursor.partition, cursor.grp) <= (asked.partition, asked.grp)
        and cursor.partition >= asked.partition
        and newest.tid is not null
      order by cursor.partition desc, cursor.grp desc
      limit 1
      for update
    ) as locked
    -- If the cursor was deleted during the wait, the row found is another cursor.
    where locked.partition = asked.partition and locked.grp = asked.grp;
    before := held.committed;
    committed := held.committed;
    said := case
      when held.partition is null then 'lost'
      when asked.nonce is not null and held.nonce is distinct from asked.nonce then 'lost'
      when asked.outcome = 'completed' and asked.through <= held.committed then 'already'
      when asked.outcome in ('failed', 'dlq') and asked.nonce is not null and held.lease_until is null
        and asked.through = held.committed - 1
        and exists (
          select from {schema}.dead_letter
          where dead_letter.partition = asked.partition and dead_letter.seq = held.committed and dead_letter.grp = asked.grp
        ) then 'already'
      when asked.outcome not in ('completed', 'release') and asked.through < held.committed then 'passed'
      when held.lease_until is null and asked.nonce is not null and asked.outcome <> 'completed' then 'already'
      when held.lease_until is null then 'lost'
      when asked.strictly and asked.nonce is not null and held.lease_until <= pg_catalog.clock_timestamp() then 'expired'
      when asked.outcome = 'completed' and asked.through > held.leased_through then 'outside'
      when asked.outcome not in ('completed', 'release') and asked.through >= held.leased_through then 'outside'
      else 'settled'
    end;
    if said <> 'settled' then
      return next;
      continue;
    end if;

    select partition_row.* into top from {schema}.partition_row_of(asked.partition) as partition_row;
    select queue.* into rules from {schema}.queue where queue.id = top.queue;
    durable := coalesce(rules.durable_acks, true);
    passed := case when asked.outcome = 'release' then held.committed else asked.through end;
    if asked.outcome = 'completed' and passed < held.leased_through then
      update {schema}.cursor
      set committed = passed, failures = 0, deliveries = 1
      where cursor.ctid = held.tid;
      committed := passed;
      return next;
      continue;
    end if;

    due := pg_catalog.clock_timestamp();
    charged := case when passed > held.committed then 0 else held.failures end;
    if asked.outcome = 'failed' then
      charged := charged + 1;
      due := due + least(rules.retry_delay, interval '10 years');
    end if;
    dead := asked.outcome = 'dlq' or (asked.outcome = 'failed' and charged > rules.retry_limit);
    if dead then
      if asked.outcome = 'dlq' or rules.dead_letters then
        perform {schema}.bury(asked.partition, asked.grp, top.queue, passed + 1, charged,
          case when passed > held.committed then 1 else held.deliveries end, asked.error);
      end if;
      due := pg_catalog.clock_timestamp();
    end if;
    committed := passed + dead::int;
    -- due_at is never cleared while the cursor, on the row we hold, was marked ready for more: rule
    -- R3 of docs/messages.md.
    more := greatest(held.upto, top.next_seq - 1) > committed;
    update {schema}.cursor
    set committed = settle.committed,
        upto = greatest(held.upto, top.next_seq - 1),
        lease_until = null,
        due_at = case when more then due end,
        failures = case when dead then 0 else charged end,
        deliveries = case
          when dead or passed = held.leased_through then 0
          when asked.outcome = 'release' then greatest(held.deliveries - 1, 0)
          when passed > held.committed then 1
          else held.deliveries
        end
    where cursor.ctid = held.tid;
    released := true;
    due_s := case when more then greatest(extract(epoch from due - pg_catalog.clock_timestamp()), 0) end;
    return next;
  end loop;
end
$reveille$;

comment on function {schema}.settle(int[], int[], uuid[], bigint[], text[], text[], boolean[])
  is 'Reveille: settles leases of messages';
