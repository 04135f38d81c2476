-- The number of jobs of each kind that have not ended, among the first $1.
-- locks:  nothing
select
  job_body.kind,
  count(*) as depth
from (
  select id
  from {schema}.job
  limit $1
) as few
join {schema}.job_body on job_body.id = few.id
group by job_body.kind
