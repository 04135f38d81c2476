//! Lost claims are given back: work that was claimed and reached no consumer is free again, as if
//! it had not been claimed.
//!
//! A claim round that fails, is given up, or whose answer is lost may have claimed. The rows carry
//! the nonces of the claim: the nonces are noted before the claim is sent and removed when its rows
//! have arrived. Claims under the remaining nonces are given back as soon as the server can be
//! reached, and again a little later, because a claim that was on its way when the connection broke
//! may take effect after the first time. After the last attempt only the end of the lease frees
//! them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::context::Context;
use crate::database::DatabaseError;
use crate::database::outage::warn_unless_away;
use crate::database::pauses::GIVE_BACK;

/// After so many empty answers we take it that nothing was claimed: a draining worker waits for
/// this.
const EMPTY_ANSWERS: usize = 5;

/// How a service gives claims back.
pub(crate) trait GiveBack: Send + Sync + 'static {
    /// The mark that a claim puts on its rows.
    type Nonce: Send + Sync + 'static;

    /// Gives back the claims under these nonces, and wakes their keys.
    fn give_back(&self, nonces: &[Self::Nonce]) -> impl Future<Output = Result<Given, DatabaseError>> + Send;
}

/// What an attempt gave back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Nothing,
    /// Claims of some statements; others may yet take effect.
    Some,
    /// Every claim that these nonces can have made.
    All,
}

/// A claim that was sent. When it is dropped before [`received_except`](Self::received_except), it
/// is given back.
pub(crate) struct SentClaim<G: GiveBack> {
    context: Arc<Context>,
    /// Taken when this is dropped.
    sent: Option<Sent<G>>,
}

struct Sent<G: GiveBack> {
    way: G,
    nonces: Vec<G::Nonce>,
}

impl<G: GiveBack> SentClaim<G> {
    /// A claim that is about to be sent under these nonces.
    pub(crate) fn new(context: &Arc<Context>, way: G, nonces: Vec<G::Nonce>) -> Self {
        Self { context: Arc::clone(context), sent: Some(Sent { way, nonces }) }
    }

    /// Every row has arrived except those that were claimed under the nonces `missing`.
    pub(crate) fn received_except(mut self, missing: Vec<G::Nonce>) {
        if let Some(sent) = &mut self.sent {
            sent.nonces = missing;
        }
    }
}

impl<G: GiveBack> Drop for SentClaim<G> {
    fn drop(&mut self) {
        if let Some(lost) = self.sent.take().filter(|sent| !sent.nonces.is_empty()) {
            let end = self.context.end().clone();
            self.context.spawn(async move { lost.give_back(&end).await });
        }
    }
}

impl<G: GiveBack> Sent<G> {
    /// Tries until everything was given back, or until enough answers were empty; after an answer
    /// with some claims, one further answer is enough. At the end of the service it tries once
    /// more, unless an attempt has succeeded.
    async fn give_back(self, end: &CancellationToken) {
        let (mut answers, mut enough, mut some_until) = (0, EMPTY_ANSWERS, None);
        for pause in GIVE_BACK {
            let paused = end.run_until_cancelled(tokio::time::sleep(pause)).await;
            if paused.is_none() && answers > 0 {
                return;
            }
            match self.way.give_back(&self.nonces).await {
                Ok(given) => {
                    debug!(?given, "tried to give back lost claims");
                    answers += 1;
                    enough = match given {
                        Given::Nothing => enough,
                        Given::Some => *some_until.get_or_insert(answers + 1),
                        Given::All => answers,
                    };
                }
                Err(error) => warn_unless_away!(&error, %error, "could not give back lost claims, trying again"),
            }
            if answers >= enough || end.is_cancelled() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    /// What the attempts answer, the last one first, and when they were made.
    struct Server {
        answers: Mutex<Vec<Result<Given, DatabaseError>>>,
        asked: Arc<Mutex<Vec<Instant>>>,
    }

    impl GiveBack for Server {
        type Nonce = i64;

        async fn give_back(&self, _: &[i64]) -> Result<Given, DatabaseError> {
            self.asked.lock().unwrap().push(Instant::now());
            self.answers.lock().unwrap().pop().unwrap_or(Ok(Given::Nothing))
        }
    }

    /// After how long each attempt is made.
    async fn attempts(
        answers: impl IntoIterator<Item = Result<Given, DatabaseError>>,
        end: &CancellationToken,
    ) -> Vec<u128> {
        let (began, asked) = (Instant::now(), Arc::<Mutex<Vec<Instant>>>::default());
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        let way = Server { answers: Mutex::new(answers), asked: Arc::clone(&asked) };
        Sent { way, nonces: vec![7] }.give_back(end).await;
        asked.lock().unwrap().iter().map(|at| at.duration_since(began).as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn claims_that_were_all_given_back_are_not_tried_again() {
        let end = CancellationToken::new();

        assert_eq!(attempts([Ok(Given::All)], &end).await, [0]);
        assert_eq!(attempts([Ok(Given::Nothing), Ok(Given::All)], &end).await, [0, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_more_attempt_follows_some_claims_and_five_attempts_are_made_for_none() {
        let end = CancellationToken::new();
        let late = [Ok(Given::Nothing), Ok(Given::Nothing), Ok(Given::Nothing), Ok(Given::Nothing), Ok(Given::Some)];

        assert_eq!(attempts([Ok(Given::Some), Ok(Given::Some)], &end).await, [0, 250]);
        assert_eq!(attempts([], &end).await, [0, 250, 1250, 3250, 8250]);
        assert_eq!(attempts(late, &end).await, [0, 250, 1250, 3250, 8250, 23_250]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_is_tried_until_the_pauses_are_over() {
        let away = std::iter::repeat_with(|| Err(DatabaseError::Closed)).take(9);

        let attempts = attempts(away, &CancellationToken::new()).await;

        assert_eq!(attempts, [0, 250, 1250, 3250, 8250, 23_250, 53_250]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_service_leaves_one_attempt_unless_one_has_succeeded() {
        let end = CancellationToken::new();
        let ending = async {
            tokio::time::sleep(Duration::from_millis(100)).await; // tidy: sleep because the clock is paused
            end.cancel();
        };

        let (answered, ()) = tokio::join!(attempts([], &end), ending);
        let too_late = attempts([], &end).await;

        assert_eq!((answered, too_late), (vec![0], vec![0]));
    }
}
