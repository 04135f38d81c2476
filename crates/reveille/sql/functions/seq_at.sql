-- The last sequence of a partition, between two sequences, whose message is older than a time.
-- Times grow with sequences, so this is a binary search.
-- locks: nothing
create or replace function {schema}.seq_at(in_partition int, low bigint, high bigint, moment timestamptz)
returns bigint
language plpgsql
stable
as $reveille$
declare
  middle bigint;
  held record;
begin
  while low < high loop
    middle := low + (high - low) / 2;
    select segment.last_seq, segment.last_seq - segment.n as before, segment.at into held
    from {schema}.segment
    where segment.partition = in_partition and segment.last_seq > middle
    order by segment.last_seq
    limit 1;
    if not found then
      high := middle;
    elsif held.at < moment then
      low := least(held.last_seq, high);
    else
      high := greatest(held.before, low);
    end if;
  end loop;
  return low;
end
$reveille$;

comment on function {schema}.seq_at(int, bigint, bigint, timestamptz) is 'Reveille: finds a sequence by its time';
