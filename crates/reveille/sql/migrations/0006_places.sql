-- Cursors and heads are found by indexes that are not unique. Nearly every update of a cursor changes an indexed column, and many
-- of a head do; then PostgreSQL looks at every version of the row before it believes that a unique key is still unique; while
-- somebody's transaction is held open none of them goes away. That a group has one cursor in a partition is kept by a table of
-- its own, which is written when a cursor is made and when it goes, and never between; that a partition has one head, by the
-- partition's own row.
-- locks: the cursors and the heads, exclusively, while the indexes are built

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

alter table {schema}.head drop constraint head_pkey;
create index head_place on {schema}.head (partition);
