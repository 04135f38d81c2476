//! What was claimed and reached nobody goes back, as if it had not been claimed.
//!
//! A look whose answer is lost, or that is given up, may have claimed: the server knows, under the look's nonce. It is asked to give
//! that back as soon as it can be reached, and once more a little later, for the claim may take effect after the first time. Beyond
//! that the lease's own end is what remains.

use std::sync::Arc;

use tracing::{debug, warn};

use crate::database::pauses::GIVE_BACK;
use crate::jobs::ground::Ground;
use crate::jobs::statements::ABANDON;
use crate::jobs::worker::Claiming;

/// After so many answers that there is nothing to give back, there is not: a drain waits for this.
const ANSWERS: usize = 4;

/// A claim on its way. Dropped before it [landed](Self::landed), what it claimed is given back.
pub(super) struct Afloat {
    ground: Arc<Ground>,
    claiming: Claiming,
    nonce: i64,
    queues: Vec<String>,
    landed: bool,
}

impl Afloat {
    pub(super) fn new(ground: &Arc<Ground>, claiming: &Claiming, nonce: i64, queues: Vec<String>) -> Self {
        Self { ground: Arc::clone(ground), claiming: claiming.clone(), nonce, queues, landed: false }
    }

    pub(super) fn landed(mut self) {
        self.landed = true;
    }
}

impl Drop for Afloat {
    fn drop(&mut self) {
        if !self.landed {
            let (ground, claiming, queues) = (Arc::clone(&self.ground), self.claiming.clone(), self.queues.clone());
            self.ground.context.spawn(give_back(ground, claiming, self.nonce, queues));
        }
    }
}

async fn give_back(ground: Arc<Ground>, claiming: Claiming, nonce: i64, queues: Vec<String>) {
    let (nonces, worker, lease) = ([nonce], claiming.worker(), claiming.lease().as_secs_f64());
    let mut answers = 0;
    for pause in GIVE_BACK {
        if ground.context.end().run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        let given = async {
            let connection = ground.database.acquire().await?;
            connection.query(&ABANDON, &[&&nonces[..], &worker, &queues, &lease]).await
        };
        match given.await {
            Ok(rows) if rows.is_empty() => {
                debug!("a look whose answer was lost had claimed nothing");
                answers += 1;
            }
            Ok(rows) => {
                warn!(jobs = rows.len(), "gave back jobs that a look had claimed without an answer");
                for queue in &queues {
                    ground.bell.ready(queue);
                }
                return;
            }
            Err(error) => warn!(%error, "could not give back what a lost look may have claimed, its lease will end"),
        }
        if answers == ANSWERS {
            return;
        }
    }
}
