//! Wakes the consumers of a queue when there is work, so that they need not poll.
//!
//! For queues in a database: Reveille's, or a table of your own. Your code reports what happens (a
//! commit, a notification, the end of a delay), the engine wakes the consumers that should claim.
//! It knows no database and sends no query: claiming is your code.
//!
//! # Words
//!
//! - A **key** is what a consumer waits for, such as the name of a queue; any type that can be
//!   hashed will do.
//! - A **wake** is a hint that a key may have work now. It has a key and a [`Cause`], never data.
//! - A **due time** is a wake in the future: a delay, a retry or a lease ends.
//! - The **link** is the connection that brings hints from other processes. It is *proven* while it
//!   answers probes.
//! - A **demand** is a consumer that waits for work: a free worker slot, a long poll.
//! - A **claim round** is one pass in which a [`Dispatcher`] claims for all demands that wait.
//! - The **poll mode** says how often a dispatcher claims without being woken: rarely, or by
//!   **fallback polling** while hints cannot be trusted.
//!
//! ```text
//!   commit, notification ─► wake ───┐                  ┌─► Armed: one key, your own loop
//!   delay, lease ─► wake_after ─────┼─► Hub ── wakes ──┤
//!   lost process ─► wake_all ───────┤                  └─► Watch ─► Dispatcher ─► Ticket
//!   echo, loss ─► LinkState ────────┘                                 │    ▲
//!                 PollModeState, Backoff: rounds that nothing woke ───┘    └─ Source (yours)
//! ```
//!
//! # One key: arm, claim, wait
//!
//! Between "nothing there" and "wait" another process can commit. So a consumer arms its key first,
//! and every later wake is kept for it. A key that is not known to be empty is woken by arming it,
//! so this loop cannot be written in the wrong order:
//!
//! ```
//! use std::time::{Duration, Instant};
//! use reveille_wake::{Cause, Hub, HubOptions, Outcome, Waited};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), reveille_wake::Refused> {
//! let (hub, _runner) = Hub::new(HubOptions::default()); // run the runner in a task for due times
//! let mut rows = vec!["a letter"]; // your table
//!
//! let mut armed = hub.arm("mail")?;
//! while let Waited::Woken(_cause) = armed.wait(Instant::now() + Duration::from_millis(5)).await {
//!     let claim = armed.claim(); // answers every wake so far; dropped, it puts them back
//!     let taken = rows.pop(); // your statement: `for update skip locked`
//!     claim.found(Outcome::of(usize::from(taken.is_some()), 1));
//! }
//! hub.wake(&"mail", Cause::Pushed); // after your commit
//! # Ok(())
//! # }
//! ```
//!
//! `examples/plain_table.rs` is this loop on a plain PostgreSQL table, with `LISTEN`.
//!
//! # Many consumers: a dispatcher
//!
//! A [`Dispatcher`] claims for all its demands with one call of your [`Source`] and hands out the
//! leases. A thousand consumers that wait cost one claim when a row is committed, not a thousand:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use std::time::{Duration, Instant};
//! use reveille_wake::{
//!     Answer, Cause, Dispatcher, DispatcherOptions, Hub, HubOptions, Patience, Round, RoundFailed,
//!     RoundResult, Source,
//! };
//!
//! #[derive(Default)]
//! struct Letters(Mutex<Vec<&'static str>>); // your table
//!
//! impl Source for Letters {
//!     type Key = &'static str;
//!     type Request = ();
//!     type Lease = &'static str;
//!
//!     async fn claim(
//!         &self,
//!         round: Round<&'static str, ()>,
//!     ) -> Result<RoundResult<&'static str, &'static str>, RoundFailed> {
//!         let mut rows = self.0.lock().unwrap(); // one statement for the whole round
//!         let mut result = RoundResult::default();
//!         for demand in &round.demands {
//!             result.leases.extend(rows.pop().map(|row| (demand.id, row)));
//!         }
//!         if !rows.is_empty() {
//!             result.more.extend(round.keys.iter().map(|woken| woken.key));
//!         }
//!         Ok(result)
//!     }
//!
//!     async fn release(&self, leases: Vec<&'static str>) {
//!         self.0.lock().unwrap().extend(leases); // claimed for a consumer that has gone
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), reveille_wake::Refused> {
//! let letters = Arc::new(Letters::default());
//! let (hub, runner) = Hub::new(HubOptions::default());
//! let options = DispatcherOptions::default();
//! let (dispatcher, handle) = Dispatcher::new(&hub, Arc::clone(&letters), options);
//! tokio::spawn(runner.run(std::future::pending()));
//! tokio::spawn(dispatcher.run(std::future::pending()));
//!
//! let patience = Patience::Until(Instant::now() + Duration::from_secs(30));
//! let ticket = handle.request(["mail"], (), patience)?;
//! letters.0.lock().unwrap().push("a letter");
//! hub.wake(&"mail", Cause::Pushed); // after your commit
//!
//! assert_eq!(ticket.await, Answer::Lease("a letter"));
//! # Ok(())
//! # }
//! ```
//!
//! # What it promises
//!
//! - No wake is lost, and no wake is owned by a future that may be dropped. Every waiter of a key
//!   remembers a wake until its own next claim begins, and a claim that fails puts its wake back.
//! - With a [`Dispatcher`] a wake costs one claim round however many demands wait
//!   ([`Policy::Competing`]), or one for each of them ([`Policy::Broadcast`]). A hundred rows of
//!   one commit reach as many demands as want them.
//! - A key that was found empty since its last wake, under a proven link, is not claimed from again
//!   for a newcomer. Idle consumers that come and go cost no query.
//! - No due time wakes early, and an earlier one shortens every sleep.
//! - Everything has a limit, and reaching it is a value: [`Refused`].
//!
//! Hints may be forged, late or lost: they make consumers fast, correctness never depends on them.
//! Work whose hint was lost is found by a fallback round, every 5 minutes by default, and by
//! fallback polling while the link is not proven.

mod cause;
mod outcome;
mod refused;

mod clock;
mod sync;

mod dues;
mod hub;
mod link;

mod backoff;
mod gate;
mod poll_mode;
mod poll_mode_options;

mod demand;
mod desk;
mod dispatcher;
mod source;

mod observe;

pub use backoff::{Backoff, BackoffOptions};
pub use cause::Cause;
pub use demand::{Answer, DemandId, Patience, Ticket};
pub use dispatcher::{Dispatcher, DispatcherHandle, DispatcherOptions, KeyCounts, Policy};
pub use dues::{DueSource, Dues, Fired};
pub use hub::{Armed, Claim, Hub, HubOptions, Key, Runner, Stretch, Waited, Watch, WokenKey};
pub use link::{Link, LinkState};
pub use observe::{Counters, Event, Observer};
pub use outcome::Outcome;
pub use poll_mode::{PollMode, PollModeChange, PollModeState};
pub use poll_mode_options::{FallbackCause, FallbackCauses, PollModeOptions};
pub use refused::Refused;
pub use source::{Round, RoundFailed, RoundResult, Source, WaitingDemand};
