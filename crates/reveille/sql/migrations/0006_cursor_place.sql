-- Cursors are found by an index that is not unique. Nearly every update of a cursor changes an indexed column, and then
-- PostgreSQL looks at every version of the row before it believes that a unique key is still unique; while somebody's
-- transaction is held open none of them goes away. That a group has one cursor in a partition is kept by a table of its own,
-- which is written when a cursor is made and when it goes, and never between.
-- locks: the cursors, exclusively, while the index is built

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
