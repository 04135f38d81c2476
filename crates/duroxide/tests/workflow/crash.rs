//! Two programs on one schema, one of them killed again and again.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_duroxide::PostgresProvider;
use reveille_testkit::{TestDatabase, connect};
use tokio_postgres::Client;

use crate::fault_orders::{Ledger, STEPS, begin, check_complete, client, name, run};

const THIS_TEST: &str = "crash::orders_survive_a_program_that_is_killed_again_and_again_and_none_is_done_twice";
const PLACE: &str = "REVEILLE_TEST_PLACE_OF_WORK";
/// So many are under way that both programs have work, whichever is quicker.
const UNDER_WAY: i64 = 40;
const COMPLETED: &str = "select count(*) from duroxide.execution where status = 'Completed'";
const KILLS: i64 = 6;
/// Activities of a killed program that were done and not yet recorded are done again: no more than
/// it has slots.
const SLOTS: i64 = 4;

/// A program of its own that works on the orders; killed with the value, if not before.
struct Program {
    process: Child,
}

impl Program {
    fn start(url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a test knows its program"));
        // The same test again, which finds in its environment that it is to work.
        command.args([THIS_TEST, "--exact", "--nocapture"]).env(PLACE, url);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("its output is piped")).lines();
        let ready = output.map_while(Result::ok).any(|line| line.contains("at work"));
        assert!(ready, "the program did not begin to work");
        Self { process }
    }

    /// `kill -9`.
    fn kill(&mut self) {
        self.process.kill().expect("a process can be killed");
        self.process.wait().expect("and ends");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where to work, if this process was started by [`Program::start`].
#[expect(clippy::disallowed_methods, reason = "how the program that a test starts learns what it is")]
fn place_of_work() -> Option<String> {
    std::env::var(PLACE).ok()
}

/// What the started program does, until it is killed or its parent goes away.
async fn work(url: &str) {
    let ledger = Ledger::Table(Arc::new(connect(url).await));
    let provider = PostgresProvider::options().url(url).open().await.expect("a provider opens");
    let _working = run(&provider, ledger).await;
    println!("at work");
    let gone = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let _ = gone.await;
}

async fn number(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.expect("the database answers").get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_survive_a_program_that_is_killed_again_and_again_and_none_is_done_twice() {
    if let Some(url) = place_of_work() {
        return work(&url).await;
    }
    let database = TestDatabase::new().await;
    let admin = database.client().await;
    admin.batch_execute("create table ledger (step text, process int4)").await.unwrap();
    let provider = PostgresProvider::options().url(database.url()).open().await.unwrap();
    let orders = client(&provider);
    let _steady = Program::start(&database.url());
    let mut victim = Program::start(&database.url());
    let mut begun = 0;

    for kill in 1..=KILLS {
        // By the work of the victim itself, so that each one is killed in the middle of something.
        let done = format!("select count(*) from ledger where process = {}", victim.process.id());
        let deadline = Instant::now() + Duration::from_secs(60);
        while number(&admin, &done).await < 5 + kill && Instant::now() < deadline {
            // An order and its parcel.
            if i64::try_from(begun).unwrap() - number(&admin, COMPLETED).await / 2 < UNDER_WAY {
                begin(&orders, begun).await;
                begun += 1;
            } else {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        }
        victim.kill();
        victim = Program::start(&database.url());
    }
    for order in 0..begun {
        check_complete(&orders, order).await;
    }

    let expected = i64::try_from(begun * STEPS).unwrap();
    assert_eq!(number(&admin, "select count(distinct step) from ledger").await, expected);
    let again = number(&admin, "select count(*) - count(distinct step) from ledger").await;
    assert!(again <= KILLS * SLOTS, "{again} steps were done again after {KILLS} kills");
    assert!(number(&admin, "select count(distinct process) from ledger").await > KILLS, "every program worked");
    assert_eq!(number(&admin, "select count(*) from duroxide.activity").await, 0, "nothing is left to do");
    assert_eq!(number(&admin, "select count(*) from duroxide.message").await, 0, "nothing is left to deliver");
    assert_eq!(number(&admin, COMPLETED).await, i64::try_from(begun * 2).unwrap(), "{} and the others", name(0));
}
