//! The commands that use a running server, with a real one.

use std::process::Stdio;

use nix::sys::signal::Signal;
use reveille_testkit::TestDatabase;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::support::{Home, PATIENCE, Ran, Serving, finished, signal_group};

/// A server on a database of its own, and a home for the commands that use it.
struct Fixture {
    home: Home,
    url: String,
    serving: Serving,
    db: TestDatabase,
}

impl Fixture {
    async fn new() -> Self {
        let (db, home) = (TestDatabase::new().await, Home::new());
        let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()];
        let serving = Serving::start(home.command(&serve)).await;
        Self { url: format!("http://{}", serving.address), home, serving, db }
    }

    /// Kills the server, and starts another in its place.
    async fn serve_again(&mut self) {
        let address = self.serving.address.clone();
        self.serving.signal_alone(Signal::SIGKILL);
        self.serving.exit_code().await;
        let serve = ["serve", "--listen", &address, "--database-url", &self.db.url()];
        self.serving = Serving::start(self.home.command(&serve)).await;
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        self.home.run(&[arguments, &["--server", &self.url]].concat()).await
    }

    /// The same, and it must succeed.
    async fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments).await;
        ran.assert_code(0);
        ran
    }

    /// With something on standard input.
    async fn fed(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.home.command(&[arguments, &["--server", &self.url]].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("its input is ours");
        // A program that refuses early closes its end.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = timeout(PATIENCE, child.wait_with_output()).await.expect("it ends in time").expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("it speaks UTF-8");
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    async fn pop(&self, arguments: &[&str]) -> Value {
        self.ok(&[&["pop", "--json"], arguments].concat()).await.json()
    }
}

fn payloads(popped: &Value) -> Vec<String> {
    popped["messages"]
        .as_array()
        .expect("pop prints messages")
        .iter()
        .map(|message| message["data"].to_string())
        .collect()
}

#[tokio::test]
async fn a_pushed_message_is_popped_and_acked_with_the_printed_command() {
    let fixture = Fixture::new().await;
    let pushed = fixture.ok(&["push", "mail", "--partition", "ada", r#"{"to":"ada"}"#, "2"]).await;
    assert_eq!(pushed.stdout.matches("queued").count(), 2, "{pushed:?}");

    let popped = fixture.ok(&["pop", "mail", "--batch", "10"]).await;
    let ack = popped.stdout.lines().find(|line| line.starts_with("reveille ack ")).unwrap();
    let words: Vec<&str> = ack.split(' ').skip(1).collect();
    let acked = fixture.ok(&words).await;

    assert!(popped.stdout.contains(r#"{"to":"ada"}"#) && popped.stdout.contains("ada"), "{popped:?}");
    assert_eq!(acked.stdout.matches("settled").count(), 2, "{acked:?}");
    let nothing = fixture.ok(&["pop", "mail"]).await;
    assert_eq!((nothing.stdout.as_str(), nothing.sentence()), ("", "nothing there"));
}

#[tokio::test]
async fn a_pop_as_json_can_be_piped_into_ack() {
    let fixture = Fixture::new().await;
    fixture.ok(&["push", "mail", "--transaction-id", "order-7", "123456789012345678901234567890.5"]).await;

    let popped = fixture.ok(&["pop", "mail", "--group", "billing", "--json"]).await;
    let acked = fixture.fed(&["ack", "--json"], &popped.stdout).await;
    let again = fixture.fed(&["ack"], &popped.stdout).await;

    assert!(popped.stdout.contains("123456789012345678901234567890.5"), "as it was written: {popped:?}");
    assert_eq!((acked.code, &acked.json()[0]["transactionId"]), (Some(0), &Value::from("order-7")), "{acked:?}");
    again.assert_code(0);
    assert_eq!(payloads(&fixture.pop(&["mail", "--group", "billing"]).await), [""; 0]);
    let nothing = fixture.fed(&["ack"], r#"{"messages":[]}"#).await;
    assert_eq!((nothing.code, nothing.sentence()), (Some(0), "there was nothing to ack"));
}

#[tokio::test]
async fn lines_are_pushed_from_standard_input_and_from_a_file() {
    let fixture = Fixture::new().await;
    let lines = (0..2500).map(|n| format!("{{\"n\":{n}}}")).collect::<Vec<_>>().join("\n");
    let file = fixture.home.file("letters.jsonl", "\"a\"\n\n\"b\"\n");

    let piped = fixture.fed(&["push", "many"], &lines).await;
    let from_file = fixture.ok(&["push", "few", "--file", &file, "--json"]).await;

    assert_eq!((piped.code, piped.stdout.as_str()), (Some(0), "pushed 2500 messages to many\n"), "{piped:?}");
    let results: Vec<Value> = from_file.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(results.len() == 2 && results.iter().all(|result| result["status"] == "queued"), "{results:?}");
    assert_eq!(payloads(&fixture.pop(&["few", "--batch", "9"]).await), [r#""a""#, r#""b""#]);
    let first = fixture.pop(&["many", "--batch", "10000", "--auto-ack"]).await;
    assert_eq!(payloads(&first).len(), 2500);
    assert_eq!(payloads(&first)[2499], r#"{"n":2499}"#);
}

#[tokio::test]
async fn a_payload_that_is_no_json_is_refused_with_its_place() {
    let fixture = Fixture::new().await;

    let typed = fixture.run(&["push", "mail", "1", "hello"]).await;
    let piped = fixture.fed(&["push", "mail"], "1\n{\"a\":\n3\n").await;
    let none = fixture.fed(&["push", "mail"], "\n").await;

    typed.assert_code(2);
    assert!(typed.sentence().starts_with("payload 2 is no JSON: hello "), "{typed:?}");
    piped.assert_code(2);
    assert!(piped.sentence().starts_with("line 2 of standard input is no JSON: {\"a\": "), "{piped:?}");
    assert!(piped.sentence().contains("1 messages before it were pushed"), "{piped:?}");
    none.assert_code(2);
    assert!(none.sentence().starts_with("there was nothing to push"), "{none:?}");
    assert_eq!(
        payloads(&fixture.pop(&["mail", "--batch", "9"]).await),
        ["1"],
        "nothing of the first command, one payload of the second"
    );
}

#[tokio::test]
async fn a_pop_that_waits_is_woken_by_a_push() {
    let fixture = Fixture::new().await;
    let waiting = fixture.home.command(&["pop", "mail", "--wait=50s", "--json", "--server", &fixture.url]);
    let waiting = finished(waiting);
    let pushing = async {
        // The pop must wait before anything is pushed.
        loop {
            let status: Value = serde_json::from_str(&fixture.serving.get("/api/v1/status").await.1).unwrap();
            if status["registry"]["parked"] == 1 {
                break;
            }
        }
        fixture.ok(&["push", "mail", "7"]).await;
    };

    let (popped, ()) = tokio::join!(waiting, pushing);

    assert_eq!(payloads(&popped.json()), ["7"]);
}

#[tokio::test]
async fn an_ack_that_is_refused_ends_with_code_1() {
    let fixture = Fixture::new().await;
    fixture.ok(&["push", "mail", "1"]).await;
    let popped = fixture.pop(&["mail"]).await;
    let partition = popped["messages"][0]["partitionId"].as_str().unwrap();
    let id = popped["messages"][0]["transactionId"].as_str().unwrap();
    let other_lease = "01890000-0000-7000-8000-000000000000";

    let refused = fixture.run(&["ack", "--partition-id", partition, "--lease", other_lease, id]).await;
    let without_partition = fixture.run(&["ack", id]).await;
    let not_popped = fixture.fed(&["ack"], "hello").await;

    refused.assert_code(1);
    assert!(refused.stdout.contains("refused: "), "{refused:?}");
    without_partition.assert_code(2);
    assert!(without_partition.stderr.contains("--partition-id"), "{without_partition:?}");
    not_popped.assert_code(2);
    assert!(not_popped.sentence().starts_with("standard input is not what `reveille pop --json` prints"));
}

#[tokio::test]
async fn tail_shows_what_comes_and_leaves_nothing_behind() {
    let fixture = Fixture::new().await;
    fixture.ok(&["push", "mail", "\"before\""]).await;
    let mut command = fixture.home.command(&["tail", "mail", "--server", &fixture.url]);
    let mut child = command.spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let note = timeout(PATIENCE, talk.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(note, "reveille: following mail from now on; Ctrl-C ends");

    fixture.ok(&["push", "mail", "--partition", "ada", "\"after\""]).await;
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(line.contains("  ada  ") && line.ends_with("\"after\""), "{line}");
    let during = fixture.ok(&["groups", "--json"]).await.json();
    signal_group(&child, Signal::SIGINT);
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();

    assert_eq!(status.code(), Some(0));
    assert!(during.to_string().contains("reveille-tail-"), "{during}");
    assert!(!fixture.ok(&["groups"]).await.stdout.contains("reveille-tail-"));
    let left = fixture.pop(&["mail", "--batch", "9", "--partitions", "9"]).await;
    let mut left = payloads(&left);
    left.sort();
    assert_eq!(left, ["\"after\"", "\"before\""], "others miss nothing");
}

#[tokio::test]
async fn tail_continues_after_the_server_was_killed_and_restarted() {
    let mut fixture = Fixture::new().await;
    fixture.ok(&["queues", "configure", "mail"]).await;
    let mut child = fixture.home.command(&["tail", "mail", "--json", "--server", &fixture.url]).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    timeout(PATIENCE, talk.next_line()).await.unwrap().unwrap().unwrap();
    fixture.ok(&["push", "mail", "1"]).await;
    let first = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();

    fixture.serve_again().await;
    fixture.ok(&["push", "mail", "2"]).await;

    let second = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    let data = |line: &str| serde_json::from_str::<Value>(line).unwrap()["data"].clone();
    assert_eq!((data(&first), data(&second)), (1.into(), 2.into()));
    signal_group(&child, Signal::SIGINT);
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(!fixture.ok(&["groups"]).await.stdout.contains("reveille-tail-"));
}

#[tokio::test]
async fn tail_as_json_ends_when_its_reader_is_gone() {
    let fixture = Fixture::new().await;
    fixture.ok(&["queues", "configure", "mail"]).await;
    let mut child = fixture.home.command(&["tail", "mail", "--json", "--server", &fixture.url]).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    timeout(PATIENCE, talk.next_line()).await.unwrap().unwrap().unwrap();
    fixture.ok(&["push", "mail", "{\"a\": 1.0}"]).await;
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    drop(lines);

    fixture.ok(&["push", "mail", "2"]).await;

    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(line.contains("{\"a\": 1.0}"), "{line}");
    assert!(!fixture.ok(&["groups"]).await.stdout.contains("reveille-tail-"));
}

#[tokio::test]
async fn queues_are_listed_configured_shown_and_deleted() {
    let fixture = Fixture::new().await;
    let configured =
        fixture.ok(&["queues", "configure", "a/b", "leaseTime=7", "requireLease=true", "--namespace", "shop"]).await;
    fixture.ok(&["push", "a/b", "1", "2"]).await;

    let listed = fixture.ok(&["queues"]).await;
    let shown = fixture.ok(&["queues", "show", "a/b", "--json"]).await.json();
    let others = fixture.ok(&["queues", "--namespace", "other"]).await;
    let wrong = fixture.run(&["queues", "configure", "a/b", "leaseTime"]).await;
    let careful = fixture.run(&["queues", "delete", "a/b"]).await;
    let deleted = fixture.ok(&["queues", "delete", "a/b", "--yes"]).await;
    let again = fixture.run(&["queues", "delete", "a/b", "--yes"]).await;

    assert!(configured.stdout.contains("leaseTime") && configured.stdout.contains('7'), "{configured:?}");
    let row = listed.stdout.lines().find(|line| line.starts_with("a/b")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["a/b", "2", "2", "1", "0", "shop"]);
    assert_eq!((&shown["options"]["leaseTime"], &shown["options"]["requireLease"]), (&7.into(), &true.into()));
    assert!(fixture.run(&["queues", "show", "a/b"]).await.sentence().contains("no_such_queue"));
    assert!(!others.stdout.contains("a/b"), "{others:?}");
    wrong.assert_code(2);
    careful.assert_code(1);
    assert!(careful.sentence().ends_with("say --yes to do it"), "{careful:?}");
    assert_eq!(deleted.stdout, "deleted\n");
    again.assert_code(1);
}

#[tokio::test]
async fn groups_are_listed_moved_and_deleted() {
    let fixture = Fixture::new().await;
    fixture.ok(&["push", "mail", "1", "2", "3"]).await;
    fixture.pop(&["mail", "--group", "audit", "--batch", "2", "--auto-ack"]).await;

    let listed = fixture.ok(&["groups", "--queue", "mail"]).await;
    let shown = fixture.ok(&["groups", "show", "audit"]).await;
    fixture.ok(&["groups", "seek", "audit", "mail", "--to-end"]).await;
    let at_end = payloads(&fixture.pop(&["mail", "--group", "audit", "--batch", "9"]).await);
    let sought = fixture.ok(&["groups", "seek", "audit", "mail", "--to-beginning", "--partition", "Default"]).await;
    let replayed = payloads(&fixture.pop(&["mail", "--group", "audit", "--batch", "9", "--auto-ack"]).await);
    let nowhere = fixture.run(&["groups", "seek", "audit", "mail"]).await;
    fixture.ok(&["groups", "delete", "audit"]).await;

    let row = listed.stdout.lines().find(|line| line.starts_with("audit")).unwrap();
    assert_eq!(row.split_whitespace().take(3).collect::<Vec<_>>(), ["audit", "mail", "1"], "{listed:?}");
    assert!(shown.stdout.contains("Default"), "{shown:?}");
    assert_eq!(at_end, [""; 0]);
    assert_eq!(sought.stdout, "moved in 1 partitions\n");
    assert_eq!(replayed, ["1", "2", "3"]);
    nowhere.assert_code(2);
    assert!(!fixture.ok(&["groups"]).await.stdout.contains("audit"));
    let gone = fixture.run(&["groups", "show", "audit"]).await;
    assert_eq!((gone.code, gone.sentence()), (Some(1), "no consumer group is called audit"));
}

#[tokio::test]
async fn dead_letters_are_listed_redriven_and_deleted() {
    let fixture = Fixture::new().await;
    fixture.ok(&["push", "mail", "1", "2"]).await;
    for _ in 0..2 {
        let popped = fixture.ok(&["pop", "mail", "--json"]).await;
        fixture.fed(&["ack", "--status", "dlq", "--error", "spoilt"], &popped.stdout).await.assert_code(0);
    }

    let listed = fixture.ok(&["dlq", "--queue", "mail"]).await;
    let letters = fixture.ok(&["dlq", "--json", "--text", "spoilt"]).await.json();
    let ids: Vec<&str> =
        letters["messages"].as_array().unwrap().iter().map(|letter| letter["id"].as_str().unwrap()).collect();
    let unclear = fixture.run(&["dlq", "redrive"]).await;
    let nothing = fixture.run(&["dlq", "redrive", "99999"]).await;
    nothing.assert_code(1);
    assert_eq!(nothing.stdout, "nothing was put back to work: there is none\n");
    let nowhere = fixture.run(&["dlq", "redrive", "--queue", "nowhere"]).await;
    nowhere.assert_code(1);
    let redriven = fixture.run(&["dlq", "redrive", ids[0], "99999"]).await;
    redriven.assert_code(1);
    let back = payloads(&fixture.pop(&["mail"]).await);
    let deleted = fixture.ok(&["dlq", "delete", ids[1]]).await;
    let again = fixture.run(&["dlq", "delete", ids[1]]).await;

    assert!(listed.stdout.contains("spoilt") && listed.stdout.ends_with("2 of 2\n"), "{listed:?}");
    unclear.assert_code(2);
    assert_eq!(redriven.stdout, "put back to work: 1 of 2\n");
    assert_eq!(back, ["2"], "the newest is the first of the list");
    assert_eq!(deleted.stdout, format!("deleted {}\n", ids[1]));
    again.assert_code(1);
    assert!(fixture.ok(&["dlq", "delete", "--all"]).await.stdout.starts_with("deleted: 0"));
}

#[tokio::test]
async fn an_unreachable_server_ends_with_code_3() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);

    let ran = Home::new().run(&["queues", "--server", &url]).await;

    ran.assert_code(3);
    let expected = format!("no server answers at {url}: is `reveille serve` running there?");
    assert!(ran.sentence().starts_with(&expected), "{ran:?}");
}

#[tokio::test]
async fn the_server_can_be_named_by_the_environment() {
    let fixture = Fixture::new().await;
    fixture.ok(&["push", "mail", "1"]).await;
    let mut command = fixture.home.command(&["queues", "--json"]);
    command.env("REVEILLE_SERVER_URL", &fixture.url);

    let ran = finished(command).await;
    let wrong = fixture.home.run(&["queues", "--server", "localhost"]).await;

    assert_eq!(ran.json()["queues"][0]["name"], "mail");
    wrong.assert_code(2);
    assert!(wrong.sentence().contains("client.server = \"localhost\" is no address of a server"), "{wrong:?}");
}

#[tokio::test]
async fn a_missing_queue_is_named() {
    let fixture = Fixture::new().await;

    let popped = fixture.ok(&["pop", "mial"]).await;
    let followed = fixture.run(&["tail", "mial"]).await;

    assert_eq!(popped.sentence(), "nothing there: no queue is called mial yet");
    followed.assert_code(1);
    assert_eq!(followed.sentence(), "no queue is called mial");
}
