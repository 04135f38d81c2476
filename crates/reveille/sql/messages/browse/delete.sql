-- Delete the message $2 of the partition $1: its payload is erased, its sequence stays.
-- locks:  the segment's row
update {schema}.segment
set gone = array_append(segment.gone, ($2::bigint - segment.last_seq + segment.n)::int),
    payloads[$2::bigint - segment.last_seq + segment.n] = ''
where segment.partition = $1::int
  and segment.last_seq = (
    select holder.last_seq
    from {schema}.segment as holder
    where holder.partition = $1::int and holder.last_seq >= $2::bigint
    order by holder.last_seq
    limit 1
  )
  and $2::bigint > segment.last_seq - segment.n
  and not coalesce(($2::bigint - segment.last_seq + segment.n)::int = any (segment.gone), false)
