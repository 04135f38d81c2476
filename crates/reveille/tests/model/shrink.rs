//! Makes a failing story short: leave steps out for as long as it still fails.

use reveille_testkit::world::World;

use crate::model::Check;
use crate::play::play;
use crate::snapshot::Eye;
use crate::story::Story;

/// More attempts would not make it much clearer.
const ATTEMPTS: usize = 400;

/// The shortest story found that fails, and how.
pub(crate) async fn shrink(world: &World, eye: &Eye, queue: &str, story: Story, fault: String) -> (Story, String) {
    let (mut story, mut fault) = (story, fault);
    let mut attempts = 0;
    let mut chunk = story.steps.len() / 2;
    while chunk > 0 && attempts < ATTEMPTS {
        let mut at = 0;
        while at < story.steps.len() && attempts < ATTEMPTS {
            let mut shorter = story.clone();
            let end = (at + chunk).min(shorter.steps.len());
            shorter.steps.drain(at..end);
            attempts += 1;
            match attempt(world, eye, &format!("{queue}-{attempts}"), &shorter).await {
                Ok(()) => at += chunk,
                Err(other) => (story, fault) = (shorter, other),
            }
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
    (story, fault)
}

async fn attempt(world: &World, eye: &Eye, queue: &str, story: &Story) -> Check {
    play(world, eye, queue, story).await
}
