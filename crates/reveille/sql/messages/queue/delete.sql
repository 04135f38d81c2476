-- Delete the queue $1: from now on it does not exist, and its messages are gone. Their rows are
-- removed afterwards, see messages/queue/leftovers.sql.
-- locks:  the queue's row; the outbox rows of that name
with gone as (
  delete from {schema}.queue where queue.name = $1::text returning queue.id
), dropped as (
  delete from {schema}.outbox where outbox.queue = $1::text
), groups as (
  delete from {schema}.consumer_group using gone where consumer_group.queue = gone.id or consumer_group.begun_for = gone.id
)
select gone.id from gone
