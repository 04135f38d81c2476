//! Thousands of random histories.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures_util::future::join_all;
use reveille_testkit::chosen;
use reveille_testkit::world::{World, deadlocks, stranded};

use crate::play::play;
use crate::shrink::shrink;
use crate::snapshot::Eye;
use crate::story::Story;

/// How many histories, always the same ones: a change is judged by itself, and not by luck.
/// `REVEILLE_HISTORIES` plays as many new ones as it says. About 40 ms of one core's time each.
const HISTORIES: u64 = 2000;
const FIRST: u64 = 20_261_117;
/// Histories at the same time: their steps meet in the same batchers, claim rounds and statements.
const AT_ONCE: u64 = 8;

/// Seeds that failed once, and seeds worth keeping.
const SEEDS: &str = include_str!("seeds.txt");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_histories_agree_with_the_model() {
    let seeds = match (chosen("REVEILLE_HISTORY_SEED"), chosen("REVEILLE_HISTORIES")) {
        (Some(seed), _) => seed..seed + 1,
        (None, None) => FIRST..FIRST + HISTORIES,
        (None, Some(many)) => {
            let first = fastrand::u64(..) >> 16;
            first..first + many
        }
    };
    run(seeds.collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_seeds_agree_with_the_model() {
    let lines = SEEDS.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    run(lines.filter(|line| !line.is_empty()).map(|line| line.parse().expect("a seed")).collect()).await;
}

/// Plays them all; a failing one is shortened and described.
async fn run(seeds: Vec<u64>) {
    let world = World::new().await;
    let begun = Instant::now();
    let fault = first_fault(&world, &seeds).await;
    println!("{} histories in {:?}", seeds.len(), begun.elapsed());
    if let Some(fault) = fault {
        panic!("{fault}");
    }

    let client = world.db.client().await;
    assert_eq!(stranded(&client, None).await, Vec::<String>::new(), "what waits is announced");
    // A session may report its deadlocks only when it ends.
    world.close().await;
    assert_eq!(deadlocks(&client).await, 0, "nobody waits for each other");
}

/// The story of a seed that fails, if there is one.
pub(crate) async fn first_fault(world: &World, seeds: &[u64]) -> Option<String> {
    let next = AtomicU64::new(0);
    let players = (0..AT_ONCE).map(|_| player(world, seeds, &next));
    join_all(players).await.into_iter().flatten().next()
}

async fn player(world: &World, seeds: &[u64], next: &AtomicU64) -> Option<String> {
    let eye = Eye::open(world.db.client().await).await;
    loop {
        let nth = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).ok()?;
        let seed = *seeds.get(nth)?;
        if nth % 100 == 0 {
            println!("history {nth}");
        }
        let story = Story::from_seed(seed);
        let queue = format!("history-{seed}");
        if let Err(fault) = play(world, &eye, &queue, &story).await {
            next.store(seeds.len() as u64, Ordering::Relaxed);
            let (story, fault) = shrink(world, &eye, &queue, story, fault).await;
            return Some(described(seed, &story, &fault));
        }
    }
}

fn described(seed: u64, story: &Story, fault: &str) -> String {
    let mut text = format!("seed {seed} fails. To play it again, add it to seeds.txt, or:\n  {}\n", replay(seed));
    let _ = writeln!(text, "Shortened to:\n{:?}", story.rules);
    for (at, step) in story.steps.iter().enumerate() {
        let _ = writeln!(text, "{at:3}  {step:?}");
    }
    let _ = write!(text, "{fault}");
    text
}

/// What brings the history of a seed back; its neighbours of that run are not part of it.
fn replay(seed: u64) -> String {
    format!("REVEILLE_HISTORY_SEED={seed} cargo test -p reveille --test model random_histories_agree_with_the_model")
}
