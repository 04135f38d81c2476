-- A page of dead letters, the newest first, by the filters $1 to $6 of functions/dead_letters.sql;
-- at most $7, after skipping $8. It ends before payloads have more than $9 bytes together, unless
-- the first alone has more: payloads that are left out are never read.
-- locks:  nothing
with page as (
  select letter.*
  from {schema}.dead_letters($1::text, $2::text, $3::text, $4::timestamptz, $5::timestamptz, $6::text) as letter
  order by letter.id desc
  limit $7::bigint
  offset $8::bigint
), weighed as (
  select page.*, row_number() over newest as place, sum(octet_length(page.payload)) over newest as bytes
  from page
  window newest as (order by page.id desc rows unbounded preceding)
)
select weighed.*
from weighed
where weighed.place = 1 or weighed.bytes <= $9::bigint
order by weighed.id desc
