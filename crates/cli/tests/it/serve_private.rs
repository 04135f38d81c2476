//! `serve` with a private PostgreSQL.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::{Home, Serving, finished, nothing_left};

const SERVE: &[&str] = &["serve", "--listen", "127.0.0.1:0"];

#[tokio::test]
async fn serve_answers_and_ctrl_c_leaves_nothing_behind() {
    let home = Home::new();
    let mut serving = Serving::start(home.command(SERVE)).await;
    let (status, body) = serving.get("/health").await;
    assert_eq!(status, 200, "{body}");
    let begun = Instant::now();

    serving.signal(Signal::SIGINT);

    assert_eq!(serving.exit_code().await, Some(0));
    nothing_left(&home.data_dir()).await;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn two_on_one_directory_share_a_server_which_outlives_the_first() {
    let home = Home::new();
    let (mut first, mut second) =
        tokio::join!(Serving::start(home.command(SERVE)), Serving::start(home.command(SERVE)));

    assert_ne!(first.address, second.address);
    assert_eq!(first.get("/readyz").await.0, 200);
    first.signal(Signal::SIGINT);
    assert_eq!(first.exit_code().await, Some(0));

    assert_eq!(second.get("/readyz").await.0, 200);
    // Other commands may use it while it runs.
    home.run(&["doctor"]).await.assert_code(0);
    assert_eq!(second.get("/readyz").await.0, 200);
    second.signal(Signal::SIGINT);
    assert_eq!(second.exit_code().await, Some(0));
    nothing_left(&home.data_dir()).await;
}

#[tokio::test]
async fn the_private_database_is_created_under_settings_meant_for_another_server() {
    let home = Home::new();
    let mut command = home.command(&["migrate", "status"]);
    command.env("REVEILLE_DATABASE_STATEMENT_MODE", "pooled").env("REVEILLE_DATABASE_LOCK_TIMEOUT", "1ms");

    let ran = finished(command).await;

    ran.assert_code(0);
}

#[tokio::test]
async fn the_printed_connection_works() {
    let home = Home::new();
    let ran = home.run(&["migrate", "up"]).await;

    ran.assert_code(0);
    let line = ran.stderr.lines().find(|line| line.contains("no DATABASE_URL")).unwrap();
    let data_dir = home.data_dir().canonicalize().unwrap();
    assert!(line.contains(&format!(" in {}; psql -h ", data_dir.display())), "{line}");
    assert!(line.ends_with(" -U postgres reveille"), "{line}");
}

/// The server that answers has another data directory, so its jobs are not in this one.
#[tokio::test]
async fn a_listing_of_jobs_starts_no_second_database_beside_a_running_server() {
    let (serving_home, home) = (Home::new(), Home::new());
    let mut serving = Serving::start(serving_home.command(SERVE)).await;
    let server = format!("http://{}", serving.address);

    let elsewhere = home.run(&["jobs", "--server", &server]).await;
    let there = serving_home.run(&["jobs", "--server", &server]).await;

    elsewhere.assert_code(1);
    let sentence = elsewhere.sentence();
    assert!(sentence.contains(&format!("the server at {server} uses another")), "{elsewhere:?}");
    assert!(sentence.contains("holds no database") && sentence.contains("--data-dir"), "{elsewhere:?}");
    assert!(!home.data_dir().exists(), "nothing was created");
    there.assert_code(0);
    serving.signal(Signal::SIGINT);
    assert_eq!(serving.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_listing_of_jobs_makes_no_database_and_starts_one_that_is_there() {
    let home = Home::new();
    let no_server = ["--server", "http://127.0.0.1:9"];

    let absent = home.run(&[&["jobs"], &no_server[..]].concat()).await;
    assert!(!home.data_dir().exists(), "nothing was created");
    home.run(&["migrate", "up"]).await.assert_code(0);
    let stopped = home.run(&[&["jobs"], &no_server[..]].concat()).await;

    absent.assert_code(1);
    assert!(absent.sentence().contains("holds no database: name one by --database-url"), "{absent:?}");
    stopped.assert_code(0);
    nothing_left(&home.data_dir()).await;
}

/// A shell without job control starts `reveille serve &` with SIGINT ignored, nohup with SIGHUP.
#[tokio::test]
async fn signals_that_were_ignored_at_the_start_end_serve_except_a_hang_up() {
    let home = Home::new();
    let mut serving = Serving::start(home.command_ignoring_signals(SERVE)).await;

    serving.signal(Signal::SIGHUP);
    assert_eq!(serving.get("/readyz").await.0, 200);
    serving.signal(Signal::SIGINT);

    assert_eq!(serving.exit_code().await, Some(0));
    nothing_left(&home.data_dir()).await;
}
