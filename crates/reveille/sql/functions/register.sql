-- Make a group known to a queue, with a cursor for every partition there is, and return its id; the first registration
-- decides where it begins. Partitions that come later begin at their beginning. Whoever registers must call catch_up in a
-- later transaction: between the two, another group's consumer may have told the cursors of its time, and not this one.
-- locks: the queue's row, so that no partition is made meanwhile
create or replace function {schema}.register(in_queue int, in_name text, in_mode text, in_from timestamptz)
returns int
language plpgsql
as $reveille$
declare
  made int;
begin
  perform from {schema}.queue where queue.id = in_queue for update;
  if not found then
    return null;
  end if;
  insert into {schema}.consumer_group (queue, name, mode, from_at)
  values (in_queue, in_name, in_mode, in_from)
  on conflict (queue, name) do nothing
  returning id into made;
  if made is null then
    return (select consumer_group.id from {schema}.consumer_group where queue = in_queue and name = in_name);
  end if;

  insert into {schema}.cursor (partition, grp, committed, upto, due_at)
  select begun.partition, made, begun.committed, begun.newest,
         case when begun.newest > begun.committed then pg_catalog.clock_timestamp() end
  from (
    select head.partition, head.next_seq - 1 as newest,
           case in_mode
             when 'all' then head.first_seq - 1
             when 'new' then head.next_seq - 1
             else coalesce((
               select segment.last_seq - segment.n
               from {schema}.segment
               where segment.partition = head.partition and segment.last_seq >= head.first_seq and segment.at >= in_from
               order by segment.last_seq
               limit 1
             ), head.next_seq - 1)
           end as committed
    from {schema}.head
    where head.queue = in_queue
  ) as begun
  order by begun.partition
  on conflict do nothing;
  return made;
end
$reveille$;

comment on function {schema}.register(int, text, text, timestamptz) is 'Reveille: makes a consumer group known';
