//! A schema from before the storage was reset, which programs refuse and only `uninstall` touches.

use crate::TestDatabase;

impl TestDatabase {
    /// Make such a schema, at `version`: the migrator's two tables with their rows, one table and
    /// one function. The name is a plain identifier.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn make_retired_schema(&self, name: &str, version: i32) {
        let made = format!(
            "create schema {name};
             create table {name}.migration (
               version integer primary key, name text not null, checksum text not null, made text[] not null,
               applied_at timestamptz not null default clock_timestamp()
             );
             create table {name}.function (
               name text primary key, hash text not null, release text not null,
               replaced_at timestamptz not null default clock_timestamp()
             );
             create table {name}.queue (id int generated always as identity primary key);
             create function {name}.remember() returns int language sql as 'select 1';
             comment on function {name}.remember() is 'Reveille: remembers';
             insert into {name}.function (name, hash, release) values ('remember', 'x', '0.1.0');
             insert into {name}.migration (version, name, checksum, made)
             select step, 'step ' || step, 'x', case step
               when 1 then array['table {name}.migration', 'table {name}.function']
               when 2 then array['table {name}.queue']
               else '{{}}'
             end
             from generate_series(1, {version}) as step"
        );
        self.client().await.batch_execute(&made).await.expect("a schema can be made");
    }

    /// Everything in a schema, and its migrations' versions: to compare with later.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn contents_of_schema(&self, name: &str) -> Vec<String> {
        let read = format!(
            "select pg_describe_object(d.classid, d.objid, d.objsubid) || ' of ' || d.xmin::text
             from pg_depend d
             where d.refclassid = 'pg_namespace'::regclass and d.refobjid = '{name}'::regnamespace
             union all
             select 'migration ' || version from {name}.migration
             union all
             select 'function ' || name || ' ' || hash from {name}.function
             order by 1"
        );
        let rows = self.client().await.query(&read, &[]).await.expect("a schema can be read");
        rows.iter().map(|row| row.get(0)).collect()
    }
}
