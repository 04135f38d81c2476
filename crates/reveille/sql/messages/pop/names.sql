-- What has come into being, or gone: queues called $1 that are there ('queue'); partitions called $3 of the queues $2 that
-- are there, or whose queue is not ('partition'); and the queues of each namespace $4 and task $5, null for any ('space').
-- `sent` says that the outbox has something for a queue that is not there. Answers by place in the question.
-- locks:  nothing
select 'queue' as kind, asked.o::int as o, null::int[] as queues,
       queue.id is null as sent
from unnest($1::text[]) with ordinality as asked (name, o)
left join {schema}.queue on queue.name = asked.name
where queue.id is not null or exists (select from {schema}.outbox where outbox.queue = asked.name)
union all
select 'partition', asked.o::int, null, false
from unnest($2::int[], $3::text[]) with ordinality as asked (queue, name, o)
where exists (select from {schema}.partition where partition.queue = asked.queue and partition.name = asked.name)
  or not exists (select from {schema}.queue where queue.id = asked.queue)
union all
select 'space', asked.o::int, array(
         select first.id
         from (
           select queue.id
           from {schema}.queue
           where (asked.namespace is null or queue.namespace = asked.namespace)
             and (asked.task is null or queue.task = asked.task)
           order by queue.priority desc, queue.id
           limit 1000
         ) as first
         order by first.id
       ), false
from unnest($4::text[], $5::text[]) with ordinality as asked (namespace, task, o)
