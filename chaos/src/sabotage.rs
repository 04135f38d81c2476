//! Breaks a promise behind the queue's back, in SQL, so that the checker has something to find.
//!
//! The product has no switch for any of this: the statements do what a defect in it would do.

use std::time::Duration;

use anyhow::Context;
use reveille_testkit::scenario::progress;
use tokio::time::sleep;

use super::calls::Caller;
use super::faults::World;
use super::history::Place;
use super::layout::{LEASE_S, TRAP};
use super::options::Sabotage;

pub(crate) async fn commit(world: &World, how: Sabotage) -> anyhow::Result<()> {
    progress(&format!("sabotage: {how:?}"));
    let mut caller = Caller::connect(&world.history, world.nodes[0].address).await?;
    match how {
        Sabotage::Unfence => unfence(world, &mut caller).await,
        Sabotage::Lose => lose(world, &mut caller).await,
    }
}

/// A holder that overslept acks after another has the message, and the database lets it: its lease
/// was written back.
async fn unfence(world: &World, caller: &mut Caller<'_>) -> anyhow::Result<()> {
    let (place, group) = (Place::new(TRAP.name, "fence"), TRAP.groups[0].0);
    caller.push(&place).await?;
    let sleeper = caller.pop(&place, group).await?.context("nothing to oversleep with")?;
    sleep(Duration::from_secs(LEASE_S) + Duration::from_millis(300)).await;
    let mut next = None;
    while next.is_none() {
        next = caller.pop(&place, group).await?;
    }
    let next = next.context("no other consumer got it")?;
    let give_back = "update reveille.cursor set nonce = $1::text::uuid, lease_until = clock_timestamp() + interval '1 minute' \
                     where nonce = $2::text::uuid";
    let admin = world.postgres.admin().await?;
    let given = admin.client.execute(give_back, &[&sleeper.lease, &next.lease]).await?;
    anyhow::ensure!(given == 1, "the lease could not be given back");
    anyhow::ensure!(caller.ack(&sleeper, group).await?, "the sabotage failed: the ack was refused");
    Ok(())
}

/// A message that was stored is not there any more.
async fn lose(world: &World, caller: &mut Caller<'_>) -> anyhow::Result<()> {
    let (place, group) = (Place::new(TRAP.name, "hole"), TRAP.groups[0].0);
    caller.push(&place).await?;
    let delete = "update reveille.segment set gone = array_append(segment.gone, segment.n), payloads[segment.n] = '' \
                  from reveille.partition where partition.id = segment.partition and partition.name = $1";
    let admin = world.postgres.admin().await?;
    let deleted = admin.client.execute(delete, &[&place.partition]).await?;
    anyhow::ensure!(deleted == 1, "there was nothing to lose");
    // The group passes the hole.
    anyhow::ensure!(caller.pop(&place, group).await?.is_none(), "the sabotage failed: the message came");
    Ok(())
}
