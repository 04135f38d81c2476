-- The tables in which migrations and functions are recorded. The migrator makes them with the first
-- migration of a schema.
-- locks: nothing that exists
create table {schema}.migration (
  version integer primary key check (version > 0),
  name text not null,
  checksum text not null,
  made text[] not null,
  applied_at timestamptz not null default clock_timestamp()
);

comment on table {schema}.migration is 'Reveille: the migrations that were applied, and what each of them made';

create table {schema}.function (
  name text primary key,
  hash text not null,
  release text not null,
  replaced_at timestamptz not null default clock_timestamp()
);

comment on table {schema}.function is 'Reveille: the functions for other languages, by the hash of their text';
