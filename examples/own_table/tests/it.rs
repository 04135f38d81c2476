//! The example, run as a reader would run it.

use std::process::Command;

use reveille_testkit::TestDatabase;

#[tokio::test]
async fn the_example_of_an_own_table_takes_every_row_and_leaves_none() {
    let db = TestDatabase::empty().await;

    let ended = Command::new(env!("CARGO_BIN_EXE_own-table")).arg(db.url()).output().expect("the example starts");

    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(said.matches(" of mail: done").count(), 3, "{said}");
    let left = db.client().await.query_one("select count(*) from public.todo", &[]).await.expect("counts");
    assert_eq!(left.get::<_, i64>(0), 0);
}
