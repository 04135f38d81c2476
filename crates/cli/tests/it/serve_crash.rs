//! `serve` killed without warning.

use nix::sys::signal::Signal;
use reveille_testkit::connect;

use crate::support::{Home, Serving, nothing_left};

const SERVE: &[&str] = &["serve", "--listen", "127.0.0.1:0"];

fn url(home: &Home) -> String {
    format!("host={} user=postgres dbname=reveille", home.data_dir().join("run").display())
}

#[tokio::test]
async fn kill_9_leaves_nothing_running_and_the_next_start_has_its_data() {
    let home = Home::new();
    let mut serving = Serving::start(home.command(SERVE)).await;
    let client = connect(&url(&home)).await;
    client.batch_execute("create table kept as select 42 as answer").await.unwrap();
    drop(client);

    serving.signal_alone(Signal::SIGKILL);

    assert_eq!(serving.exit_code().await, None);
    nothing_left(&home.data_dir()).await;
    let mut again = Serving::start(home.command(SERVE)).await;
    assert_eq!(again.get("/health").await.0, 200);
    let row = connect(&url(&home)).await.query_one("select answer from kept", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 42);
    again.signal(Signal::SIGINT);
    assert_eq!(again.exit_code().await, Some(0));
}

#[tokio::test]
async fn kill_9_of_one_of_two_leaves_the_other_served() {
    let home = Home::new();
    let mut killed = Serving::start(home.command(SERVE)).await;
    let mut other = Serving::start(home.command(SERVE)).await;

    // The whole group, as the out-of-memory killer of a container does.
    killed.signal(Signal::SIGKILL);
    assert_eq!(killed.exit_code().await, None);

    assert_eq!(other.get("/readyz").await.0, 200);
    other.signal(Signal::SIGTERM);
    assert_eq!(other.exit_code().await, Some(0));
    nothing_left(&home.data_dir()).await;
}
