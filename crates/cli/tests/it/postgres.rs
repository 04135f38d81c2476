//! `reveille postgres`, which passes its command line on.

use crate::support::{Home, finished};

#[tokio::test]
async fn postgres_has_its_own_help() {
    let ran = Home::new().run(&["postgres", "--help"]).await;

    ran.assert_code(0);
    assert!(ran.stdout.contains("--linger SECONDS"), "{ran:?}");
}

#[tokio::test]
async fn postgres_finds_the_binaries_that_serve_would_use() {
    let home = Home::new();

    let found = home.run(&["postgres", "find", "--no-download"]).await;
    let mut command = home.command(&["postgres", "find"]);
    let file = home.file("x.toml", &format!("[postgres]\nbinaries = {:?}\n", home.path().to_str().unwrap()));
    command.env_remove("REVEILLE_PG_BIN").env("REVEILLE_CONFIG", file);
    let configured = finished(command).await;

    found.assert_code(0);
    assert!(std::path::Path::new(found.stdout.trim()).join("initdb").exists(), "{found:?}");
    configured.assert_code(1);
    assert!(configured.stderr.contains("holds no usable PostgreSQL"), "{configured:?}");
}

#[tokio::test]
async fn a_wrong_command_or_flag_is_wrong_use() {
    let home = Home::new();

    home.run(&["postgres", "frobnicate"]).await.assert_code(2);
    home.run(&["postgres", "find", "--frob"]).await.assert_code(2);
    home.run(&["postgres"]).await.assert_code(2);
}
