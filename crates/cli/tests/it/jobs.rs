//! `reveille jobs`, on a database of its own.

use std::sync::Arc;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Job, JobEvent, JobId, Jobs, JobsOptions, Worker};
use reveille_testkit::{Events, TestDatabase};
use serde_json::{Value, json};

use crate::support::{Home, Ran};

const NEVER: Duration = Duration::from_secs(3600);

struct Fixture {
    home: Home,
    db: TestDatabase,
}

impl Fixture {
    async fn new() -> Self {
        Self { home: Home::new(), db: TestDatabase::new().await }
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        self.home.run(&[&["jobs"], arguments, &["--database-url", &self.db.url()]].concat()).await
    }

    async fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments).await;
        ran.assert_code(0);
        ran.stdout
    }

    async fn enqueue(&self, call: &str) -> i64 {
        let client = self.db.client().await;
        client.query_one(&format!("select reveille.enqueue({call})"), &[]).await.expect("is enqueued").get(0)
    }

    /// A job that was given up.
    async fn dead(&self, queue: &str, code: &str) -> i64 {
        let id = self.enqueue(&format!("'mail', '{{\"to\": 9007199254740993}}', queue => '{queue}'")).await;
        let end = format!(
            "delete from reveille.job where id = {id};
             insert into reveille.job_done (id, state, finished_at, epoch, attempt, queue, code, reason)
             values ({id}, 'dead', now(), 1, 4, '{queue}', '{code}', 'it cannot');
             insert into reveille.job_error (job, attempt, code, message, worker) values ({id}, 4, '{code}', 'it cannot', 'w-1')"
        );
        self.db.client().await.batch_execute(&end).await.expect("is written");
        id
    }

    async fn state(&self, id: i64) -> Value {
        let shown: Value = serde_json::from_str(&self.ok(&["show", &id.to_string(), "--json"]).await).expect("is JSON");
        shown["state"].clone()
    }
}

#[tokio::test]
async fn queues_are_listed_with_what_they_hold() {
    let fixture = Fixture::new().await;
    fixture.enqueue("'mail', '{}', queue => 'mail'").await;
    fixture.enqueue("'mail', '{}', queue => 'mail', delay => '1 h'").await;
    assert_eq!(fixture.ok(&["pause", "mail"]).await, "paused\n");

    let table = fixture.ok(&[]).await;
    let listed: Value = serde_json::from_str(&fixture.ok(&["--json"]).await).unwrap();

    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["QUEUE", "READY", "SCHEDULED", "RUNNING", "OLDEST", "READY", "STATE"]);
    assert_eq!(lines[1][..4], ["mail", "1", "1", "0"]);
    assert_eq!(lines[1].last(), Some(&"paused"));
    let queue = &listed["queues"][0];
    assert_eq!((&queue["ready"], &queue["scheduled"], &queue["paused"]), (&json!(1), &json!(1), &json!(true)));
    assert!(queue["oldest_ready_s"].as_f64().unwrap() >= 0.0);
}

#[tokio::test]
async fn a_job_is_shown_with_its_reason_its_history_and_its_unchanged_arguments() {
    let fixture = Fixture::new().await;
    let id = fixture.dead("mail", "unreachable").await.to_string();

    let text = fixture.ok(&["show", &id]).await;
    let shown = fixture.ok(&["show", &id, "--json"]).await;

    let head = format!("job {id} is dead: it failed for good after 4 attempts: unreachable: it cannot\n");
    assert!(text.starts_with(&head), "{text}");
    for words in ["kind       mail", "attempts   4 of 4", "arguments  {\"to\": 9007199254740993}", "w-1"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(shown.contains("\"args\":{\"to\": 9007199254740993}"), "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["errors"][0]["code"], "unreachable");
}

#[tokio::test]
async fn dead_jobs_are_listed_and_come_back_by_id_by_filter_and_all() {
    let fixture = Fixture::new().await;
    let (one, two) = (fixture.dead("mail", "unreachable").await, fixture.dead("mail", "refused").await);
    let (three, four) = (fixture.dead("bulk", "refused").await, fixture.dead("bulk", "refused").await);

    let listed: Value =
        serde_json::from_str(&fixture.ok(&["dead", "--json", "--queue", "mail", "--limit", "1"]).await).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!(one)));
    let table = fixture.ok(&["dead", "--after", &three.to_string()]).await;
    assert!(table.lines().nth(1).unwrap().starts_with(&four.to_string()), "{table}");
    assert_eq!(table.lines().count(), 2);

    assert_eq!(fixture.ok(&["redrive", "--queue", "mail", "--code", "unreachable"]).await, "put back to work: 1\n");
    let missing = fixture.run(&["redrive", &two.to_string(), "999"]).await;
    missing.assert_code(1);
    assert_eq!(missing.stdout, "there is no dead job 999\nput back to work: 1\n");
    let rest: Value = serde_json::from_str(&fixture.ok(&["redrive", "--all", "--json"]).await).unwrap();
    assert_eq!(rest, json!({ "redriven": [three, four], "missed": [] }));
    for id in [one, two, three, four] {
        assert_eq!(fixture.state(id).await, "ready");
    }
}

#[tokio::test]
async fn a_job_is_cancelled_once_and_a_refusal_does_not_stop_the_others() {
    let fixture = Fixture::new().await;
    let (first, second) = (fixture.enqueue("'k', '{}'").await, fixture.enqueue("'k', '{}'").await);
    fixture.ok(&["cancel", &first.to_string()]).await;

    let ran = fixture.run(&["cancel", &first.to_string(), "999", &second.to_string(), "--json"]).await;

    ran.assert_code(1);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["said"], format!("job {first} is cancelled: cancel is not possible"));
    assert_eq!(lines[1], json!({ "id": 999, "done": false, "said": "there is no job 999" }));
    assert_eq!(lines[2], json!({ "id": second, "done": true, "said": "cancelled" }));
    assert_eq!(fixture.state(second).await, "cancelled");
}

/// The worker's heartbeat is an hour, so only the commands can have woken it.
#[tokio::test]
async fn retry_and_resume_wake_a_worker_that_waits() {
    let fixture = Fixture::new().await;
    let database = Database::connect(DatabaseOptions::new(fixture.db.url()).heartbeat(NEVER)).await.unwrap();
    let events = Events::new();
    let recorder = events.clone();
    let observer = Arc::new(move |event: &JobEvent| recorder.record(event.clone()));
    let jobs = Jobs::open(&database, JobsOptions::default().observer(observer));
    let worker = Worker::builder(&jobs).queue("mail", 1).handler::<Value, _>("k", |_, _: Job| async {});
    let _worker = worker.start().await.unwrap();
    let completed = async |id: i64| {
        events.until(|event| matches!(event, JobEvent::Completed { job, .. } if job.id == JobId(id))).await;
    };

    let late = fixture.enqueue("'k', '{}', queue => 'mail', delay => '1 h'").await;
    assert_eq!(fixture.ok(&["retry", &late.to_string()]).await, format!("job {late}: runs now\n"));
    completed(late).await;
    fixture.ok(&["pause", "mail"]).await;
    let held = fixture.enqueue("'k', '{}', queue => 'mail'").await;
    assert_eq!(fixture.ok(&["resume", "mail"]).await, "resumed\n");

    completed(held).await;
}

#[tokio::test]
async fn impossible_commands_are_refused_with_their_code() {
    let fixture = Fixture::new().await;
    let empty = TestDatabase::empty().await;

    for (typed, code, words) in [
        (&["show", "999"][..], 1, "there is no job 999"),
        (&["pause", ""], 2, "the queue's name is empty"),
        (&["redrive"], 2, "the following required arguments were not provided"),
        (&["redrive", "7", "--all"], 2, "cannot be used with"),
        (&["retry", "seven"], 2, "invalid value 'seven'"),
    ] {
        let ran = fixture.run(typed).await;

        ran.assert_code(code);
        assert!(ran.stderr.contains(words), "{typed:?}: {ran:?}");
    }
    let ran = fixture.home.run(&["jobs", "--database-url", &empty.url()]).await;
    ran.assert_code(1);
    assert!(ran.sentence().contains("run `reveille migrate up`"), "{ran:?}");
}

/// All workers are dead: the age for an operator's alarm counts from the end of the lease.
#[tokio::test]
async fn a_job_whose_lease_has_ended_is_listed_as_ready_with_its_age() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("'k', '{}', queue => 'slow'").await;
    let lost =
        "update reveille.job set nonce = 7, worker = 'w', epoch = 1, attempt = 1, due_at = now() - interval '90 s'";
    fixture.db.client().await.batch_execute(lost).await.unwrap();

    let listed: Value = serde_json::from_str(&fixture.ok(&["--json"]).await).unwrap();

    let queue = &listed["queues"][0];
    assert_eq!((&queue["ready"], &queue["running"]), (&json!(1), &json!(0)));
    assert!(queue["oldest_ready_s"].as_f64().unwrap() >= 90.0, "{queue}");
    assert_eq!(fixture.state(id).await, "ready");
}

#[tokio::test]
async fn a_redrive_of_nothing_ends_with_code_1() {
    let fixture = Fixture::new().await;

    for typed in [&["redrive", "--all"][..], &["redrive", "--queue", "mail"]] {
        let ran = fixture.run(typed).await;

        ran.assert_code(1);
        assert_eq!(ran.stdout, "nothing was put back to work: there is none\n");
    }
}

#[tokio::test]
async fn an_unused_queue_can_be_paused_and_the_output_says_so() {
    let fixture = Fixture::new().await;

    assert_eq!(fixture.ok(&["pause", "mial"]).await, "paused; mial holds no job yet: the first one will wait\n");
    assert_eq!(fixture.ok(&["pause", "mial"]).await, "paused\n", "the queue is known now");
    assert_eq!(fixture.ok(&["quiet", "mial"]).await, "quiet\n");
    let listed: Value = serde_json::from_str(&fixture.ok(&["--json"]).await).unwrap();
    assert_eq!((&listed["queues"][0]["paused"], &listed["queues"][0]["quiet"]), (&json!(true), &json!(true)));
    assert_eq!(fixture.ok(&["quiet", "mial", "--off"]).await, "notifies again\n");
}

/// The worker listens and gets no notification: it finds the job by itself.
#[tokio::test]
async fn with_notifications_off_a_command_sends_none() {
    let fixture = Fixture::new().await;
    let database = Database::connect(DatabaseOptions::new(fixture.db.url()).heartbeat(NEVER)).await.unwrap();
    let events = Events::new();
    let recorder = events.clone();
    let observer = Arc::new(move |event: &JobEvent| recorder.record(event.clone()));
    let options = JobsOptions::default().observer(observer).fallback_interval(Duration::from_millis(200));
    let jobs = Jobs::open(&database, options);
    let worker = Worker::builder(&jobs).handler::<Value, _>("k", |_, _: Job| async {});
    let _worker = worker.start().await.unwrap();
    let id = JobId(fixture.dead("default", "refused").await);
    fixture.db.client().await.batch_execute("update reveille.job_body set kind = 'k'").await.unwrap();
    let notified = |event: &JobEvent| *event == JobEvent::Notified;
    // The notification of the enqueue, which was not switched off.
    events.until(notified).await;

    let url = fixture.db.url();
    let mut redrive = fixture.home.command(&["jobs", "redrive", "--all", "--database-url", &url]);
    let ran = crate::support::finished({
        redrive.env("REVEILLE_NOTIFY", "off");
        redrive
    });
    ran.await.assert_code(0);
    events.until(|event| matches!(event, JobEvent::Completed { job, .. } if job.id == id)).await;

    assert_eq!(events.count(notified), 1);
}
