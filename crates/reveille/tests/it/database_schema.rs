//! `sql/schema.sql` is what the migrations make: made from the catalog, the same on every
//! PostgreSQL that we support.

use std::fmt::Write;
use std::fs;

use reveille_testkit::{TestDatabase, chosen};
use tokio_postgres::{Client, Row};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/schema.sql");

const HEADER: &str = "\
-- The whole schema as the migrations and functions make it, to be read and compared, never run.
-- To write it anew: REVEILLE_BLESS=1 cargo test -p reveille --test it the_dump_of_the_schema
";

/// Times and lengths of time are written the same wherever the server stands.
const SETTINGS: &str = "set timezone = 'UTC'; set datestyle = 'ISO'; set intervalstyle = 'postgres'";

const TABLES: &str = "
    select oid, relname::text as name, array_to_string(reloptions, ', ') as options, relreplident = 'f' as whole_identity
    from pg_class
    where relnamespace = 'reveille'::regnamespace and relkind = 'r'
    order by relname collate \"C\"";

/// Columns in their order, then what is asked of the rows. In PostgreSQL 18 each `not null` is a
/// constraint too.
const LINES: &str = "
    select format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
        || case when a.attcollation <> t.typcollation then format(' collate %I', l.collname) else '' end
        || case when a.attstorage <> t.typstorage and a.attstorage = 'e' then ' storage external' else '' end
        || case when a.attnotnull then ' not null' else '' end
        || case a.attidentity when 'a' then ' generated always as identity' when 'd' then ' generated as identity' else '' end
        || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as line
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_collation l on l.oid = a.attcollation
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
    order by a.attnum";

const CONSTRAINTS: &str = "
    select format('constraint %I %s', conname, pg_get_constraintdef(oid)) as line
    from pg_constraint
    where conrelid = $1 and contype in ('p', 'u', 'c', 'f', 'x')
    order by contype::text collate \"C\" desc, conname collate \"C\"";

const INDEXES: &str = "
    select pg_get_indexdef(i.indexrelid) as line
    from pg_index i
    join pg_class c on c.oid = i.indexrelid
    where i.indrelid = $1 and not exists (select from pg_constraint where conindid = i.indexrelid)
    order by c.relname collate \"C\"";

const TRIGGERS: &str = "
    select pg_get_triggerdef(oid) as line
    from pg_trigger
    where tgrelid = $1 and not tgisinternal
    order by tgname collate \"C\"";

const FUNCTIONS: &str = "
    select format('create function reveille.%I(%s) returns %s', proname, pg_get_function_arguments(oid),
                  pg_get_function_result(oid)) as line
    from pg_proc
    where pronamespace = 'reveille'::regnamespace
    order by proname collate \"C\", pg_get_function_arguments(oid) collate \"C\"";

#[tokio::test]
async fn the_dump_of_the_schema_is_what_the_migrations_make() {
    let db = TestDatabase::new().await;
    let client = db.client().await;
    client.batch_execute(SETTINGS).await.unwrap();

    let made = dump(&client).await;

    if chosen("REVEILLE_BLESS") == Some(1) {
        fs::write(PATH, &made).unwrap();
    }
    let committed = fs::read_to_string(PATH).unwrap_or_default();
    let differs = made.lines().zip(committed.lines()).find(|(made, committed)| made != committed);
    assert!(
        made == committed,
        "sql/schema.sql is not what the migrations make, first {differs:?}; if that is meant, write it anew: \
         REVEILLE_BLESS=1 cargo test -p reveille --test it the_dump_of_the_schema"
    );
}

async fn dump(client: &Client) -> String {
    let mut text = HEADER.to_owned();
    for table in client.query(TABLES, &[]).await.unwrap() {
        dump_table(client, &table, &mut text).await;
    }
    text.push_str("\n-- Functions, by their signatures.\n");
    for line in client.query(FUNCTIONS, &[]).await.unwrap() {
        let _ = writeln!(text, "{};", in_small_letters(line.get("line")));
    }
    text
}

async fn dump_table(client: &Client, table: &Row, text: &mut String) {
    let (oid, name): (u32, &str) = (table.get("oid"), table.get("name"));
    let lines = async |query: &str| -> Vec<String> {
        let rows = client.query(query, &[&oid]).await.unwrap();
        rows.iter().map(|row| in_small_letters(row.get("line"))).collect()
    };
    let parts = [lines(LINES).await, lines(CONSTRAINTS).await].concat();
    let options = table.get::<_, Option<&str>>("options").map(|options| format!(" with ({options})"));
    let _ = writeln!(
        text,
        "\ncreate table reveille.{name} (\n  {}\n){};",
        parts.join(",\n  "),
        options.unwrap_or_default()
    );
    if table.get("whole_identity") {
        let _ = writeln!(text, "alter table reveille.{name} replica identity full;");
    }
    for line in [lines(INDEXES).await, lines(TRIGGERS).await].concat() {
        let _ = writeln!(text, "{line};");
    }
}

/// As we write SQL, but for what stands in quotes.
fn in_small_letters(line: &str) -> String {
    let mut quote = None;
    let small = line.chars().map(|letter| {
        match quote {
            Some(end) if letter == end => quote = None,
            Some(_) => return letter,
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None => {}
        }
        letter.to_ascii_lowercase()
    });
    small.collect()
}
