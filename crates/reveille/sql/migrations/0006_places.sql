-- Cursors and heads are found by indexes that are not unique. Nearly every update of a cursor changes an indexed column, and many
-- of a head do; then PostgreSQL looks at every version of the row before it believes that a unique key is still unique; while
-- somebody's transaction is held open none of them goes away. That a group has one cursor in a partition is kept by a table of
-- its own, which triggers write when a cursor is made and when it goes, and never between: whoever makes one, also a node of the
-- version before, makes it once. That a partition has one head is kept by the partition's own row, with which it is made.
-- locks: the heads and the cursors, exclusively, while the indexes are built

-- Running nodes take these two tables in either order, so whoever waits for the second with the first in hand may wait for
-- somebody who waits for that. Both are had within a moment, or the first is given back.
do $reveille$
declare
  usual text := current_setting('lock_timeout');
  patience timestamptz := clock_timestamp() + interval '1 minute';
begin
  loop
    begin
      perform set_config('lock_timeout', '100ms', true);
      lock table {schema}.head, {schema}.cursor in access exclusive mode;
      perform set_config('lock_timeout', usual, true);
      return;
    exception when lock_not_available then
      if clock_timestamp() > patience then
        raise;
      end if;
    end;
    perform pg_sleep(0.1 * random());
  end loop;
end
$reveille$;

alter table {schema}.head drop constraint head_pkey;
create index head_place on {schema}.head (partition);
alter table {schema}.cursor drop constraint cursor_pkey;
create index cursor_place on {schema}.cursor (partition, grp);

create table {schema}.cursor_made (
  partition int not null,
  grp int not null,
  primary key (partition, grp)
);
insert into {schema}.cursor_made (partition, grp)
select partition, grp
from {schema}.cursor;

create function {schema}.make_cursor_once()
returns trigger
language plpgsql
as $reveille$
begin
  insert into {schema}.cursor_made (partition, grp) values (new.partition, new.grp) on conflict do nothing;
  if not found then
    return null;
  end if;
  return new;
end
$reveille$;
create trigger make_once before insert on {schema}.cursor for each row execute function {schema}.make_cursor_once();

create function {schema}.forget_cursor_made()
returns trigger
language plpgsql
as $reveille$
begin
  delete from {schema}.cursor_made where cursor_made.partition = old.partition and cursor_made.grp = old.grp;
  return null;
end
$reveille$;
create trigger forget_made after delete on {schema}.cursor for each row execute function {schema}.forget_cursor_made();

-- For whoever publishes all tables: without a primary key their updates would be refused.
alter table {schema}.head replica identity full;
alter table {schema}.cursor replica identity full;
alter table {schema}.dedup_run replica identity full;
