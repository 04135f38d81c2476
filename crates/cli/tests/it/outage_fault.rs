//! An outage of the database while `serve` serves.

use std::time::Duration;

use reveille_testkit::TestCluster;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::{Home, PATIENCE, Serving, get, post};

/// Long enough for several attempts of every part that tries again.
const OUTAGE: Duration = Duration::from_secs(4);

async fn cluster(home: &Home) -> TestCluster {
    let dir = home.data_dir();
    let start = tokio::task::spawn_blocking(|| TestCluster::start(|options| options.data_dir(dir)));
    start.await.expect("a server of its own starts")
}

async fn until(serving: &Serving, what: &str, is_so: impl AsyncFn() -> bool) {
    let so = async {
        while !is_so().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, so).await.unwrap_or_else(|_| panic!("not in time: {what}\n{}", serving.log()));
}

#[tokio::test]
async fn an_outage_is_two_lines_of_the_log() {
    let home = Home::new();
    let running = cluster(&home).await;
    let url = running.url("postgres");
    let serving = Serving::start(home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &url])).await;
    let address = serving.address.clone();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { get(&address, "/api/v1/pop/queue/mail?wait=true&timeout=50000").await });
    until(&serving, "LISTEN is proven", async || serving.log().contains("hints arrive")).await;
    let push = r#"{"items":[{"queue":"other","payload":1}]}"#;
    assert_eq!(post(&serving.address, "/api/v1/push", push).await.0, 201);
    let before = serving.log().lines().count();

    tokio::task::spawn_blocking(|| drop(running)).await.unwrap();
    until(&serving, "it is not ready", async || serving.get("/readyz").await.0 == 503).await;
    // Clients go on: each of them meets the outage.
    let _ = timeout(OUTAGE, async {
        loop {
            assert_ne!(post(&serving.address, "/api/v1/push", push).await.0, 201);
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let running = cluster(&home).await;
    until(&serving, "it is ready", async || serving.get("/readyz").await.0 == 200).await;
    let mail = r#"{"items":[{"queue":"mail","payload":1}]}"#;
    assert_eq!(post(&serving.address, "/api/v1/push", mail).await.0, 201);
    assert_eq!(waiting.join_next().await.unwrap().unwrap().0, 200);

    let log = serving.log();
    let lines: Vec<&str> = log.lines().skip(before).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("PostgreSQL does not answer"), "{lines:#?}");
    assert!(lines[1].contains("INFO") && lines[1].contains("PostgreSQL answers again"), "{lines:#?}");
    assert!(lines[1].contains("outage="), "{lines:#?}");
    drop(running);
}
