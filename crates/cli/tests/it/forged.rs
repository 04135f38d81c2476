//! Names that clients choose cannot forge lines of the log or send control characters to a
//! terminal.

use reveille_testkit::TestDatabase;
use tokio::process::Command;

use crate::support::{Home, Serving, finished};

const NAME: &str = "mail\n2026-01-01T00:00:00Z ERROR reveille: FORGED \u{1b}[31m\u{9b}31m";

async fn serving(home: &Home, db: &TestDatabase) -> Serving {
    Serving::start(home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()])).await
}

fn has_control_characters(text: &str) -> bool {
    text.chars().any(|letter| letter.is_control() && letter != '\n')
}

#[tokio::test]
async fn the_log_has_one_line_for_each_event_whatever_the_names() {
    let (db, home) = (TestDatabase::new().await, Home::new());
    let serving = serving(&home, &db).await;
    let server = format!("http://{}", serving.address);

    home.run(&["push", NAME, "1", "--server", &server]).await.assert_code(0);
    home.run(&["pop", NAME, "--group", "g", "--auto-ack", "--server", &server]).await.assert_code(0);
    home.run(&["groups", "delete", "g", "--server", &server]).await.assert_code(0);

    let log = serving.log();
    let line = log.lines().find(|line| line.contains("deleted a consumer group")).expect("it is logged");
    assert!(line.contains("FORGED"), "the name stays within its line: {log}");
    assert!(!log.lines().any(|line| line.starts_with("2026-01-01")) && !has_control_characters(&log), "{log:?}");
}

#[tokio::test]
async fn the_printed_ack_command_can_be_pasted_and_has_no_control_characters() {
    let (db, home) = (TestDatabase::new().await, Home::new());
    let serving = serving(&home, &db).await;
    let server = format!("http://{}", serving.address);
    let id = "it's \\ a\n\u{1b}[2J\u{9b}31m";
    home.run(&["push", "mail", "--transaction-id", id, "1", "--server", &server]).await.assert_code(0);

    let popped = home.run(&["pop", "mail", "--group", NAME, "--server", &server]).await;
    let line =
        popped.stdout.lines().find(|line| line.starts_with("reveille ack ")).expect("the ack command is printed");
    let pasted = line.replacen("reveille", env!("CARGO_BIN_EXE_reveille"), 1);
    let mut shell = Command::new("bash");
    let acked = finished({
        shell.arg("-c").arg(format!("{pasted} --server {server}"));
        shell
    })
    .await;

    assert!(!has_control_characters(&popped.stdout), "{popped:?}");
    assert_eq!((acked.code, acked.stdout.matches("settled").count()), (Some(0), 1), "{acked:?}");
}

#[tokio::test]
async fn a_refusal_repeats_a_name_without_control_characters() {
    let (db, home) = (TestDatabase::new().await, Home::new());
    let serving = serving(&home, &db).await;
    let server = format!("http://{}", serving.address);

    let refused = home.run(&["queues", "show", NAME, "--server", &server]).await;

    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.sentence().contains("FORGED") && !has_control_characters(&refused.stderr), "{refused:?}");
}

#[tokio::test]
async fn hosts_and_origins_are_allowed_by_flag_variable_and_file() {
    let home = Home::new();
    let file = home.file("x.toml", "[http]\nallowed_origins = \"https://a.example, https://b.example\"\n");
    let flags = ["--allowed-host", "one.example", "--allowed-host", "two.example,three.example"];
    let mut command = home.command(&[&["config", "show", "--json", "--config", &file][..], &flags].concat());
    command.env("REVEILLE_HTTP_ALLOWED_HOSTS", "weaker.example");

    let shown = finished(command).await.json();
    let wrong = home.run(&["serve", "--allowed-host", "http://x.example", "--allowed-origin", "null"]).await;

    let value = |key: &str| {
        let settings = shown["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["key"] == key).unwrap()["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(value("http.allowed_hosts"), "one.example,two.example,three.example");
    assert_eq!(value("http.allowed_origins"), "https://a.example, https://b.example");
    assert_eq!((wrong.code, wrong.sentences().len()), (Some(2), 2), "{wrong:?}");
}

#[tokio::test]
async fn a_server_answers_under_a_name_that_was_allowed() {
    let (db, home) = (TestDatabase::new().await, Home::new());
    let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()];
    let serving = Serving::start(home.command(&[&serve[..], &["--allowed-host", "queue.example"]].concat())).await;

    let (allowed, _) = serving.get_as("queue.example:80", "/api/v1/status").await;
    let (refused, sentence) = serving.get_as("other.example", "/api/v1/status").await;

    assert_eq!((allowed, refused), (200, 403), "{sentence}");
    assert!(sentence.contains("--allowed-host other.example"), "{sentence}");
}
