//! The wake engine: who waits for what, and who must be woken when.
//!
//! For anybody whose work lies in tables and who would rather be woken than poll. It knows no
//! database: you report that something happened, and it wakes those who should claim.
//!
//! # Words
//!
//! A **key** is what one waits for. A **wake** says "claim for this key" and why ([`Cause`]). A
//! **demand** is somebody waiting. A **due time** is a wake in the future. The **link** is the
//! health of the hint source. The **pace** is how often to claim without being woken: rarely, or by
//! *fallback polling* while hints cannot be trusted.
//!
//! ```text
//!   commit ─► hint ─► ring(key, cause) ──┐                 ┌─► Armed: one key, your own loop
//!   delay, lease ─► ring_after ─► Dues ──┼─► Hub ── wakes ─┤
//!   reconnect ─► ring_all ───────────────┘    │            └─► Watch ─► Dispatcher ─► Ticket
//!   echo, loss ─► LinkState ─► set_link ──────┘                          │    ▲
//!                          Pacer, Backoff: rounds nothing woke ──────────┘    └─ Source (yours)
//! ```
//!
//! # Arm, claim, wait
//!
//! Between "nothing there" and "wait" somebody will push. So a waiter arms first, and a wake that
//! comes later is kept. An armed key that is not known to be empty is woken, so the loop below
//! cannot be written in the wrong order:
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
//!     let taken = rows.pop(); // your claim: `for update skip locked`
//!     claim.found(Outcome::of(usize::from(taken.is_some()), 1));
//! }
//! hub.wake(&"mail", Cause::Pushed); // after your commit
//! # Ok(())
//! # }
//! ```
//!
//! # What it promises
//!
//! - No wake is lost, and none is owned by a future that may be dropped. Every waiter of a key
//!   remembers a wake until its own next claim begins; a claim that fails puts its wake back.
//! - With a [`Dispatcher`] one push costs one claim round however many wait
//!   ([`Policy::Competing`]), or one for each of them ([`Policy::Broadcast`]), and a hundred rows
//!   in one commit reach as many as want them.
//! - A key that was found empty since its last wake, under a proven link, need not be claimed from
//!   again for a newcomer. Idle waiters that come and go cost nothing.
//! - No due time wakes early. An earlier one shortens every sleep.
//! - Everything has a limit, and reaching it is a value: [`Refused`].
//!
//! Hints may be forged, late or lost: they are never needed for correctness, only for speed. Lost
//! ones are found by the fallback round, and while the link is not proven by fallback polling.
//!
//! # Where to begin
//!
//! `examples/plain_table.rs` wakes the workers of a plain PostgreSQL table. For many clients,
//! implement [`Source`] and run a [`Dispatcher`]: it claims for all of them at once and hands out
//! the leases.

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
pub use dispatcher::{Dispatcher, DispatcherHandle, DispatcherOptions, Policy};
pub use dues::{DueSource, Dues, Fired};
pub use hub::{Armed, Claim, Hub, HubOptions, Key, Runner, Stretch, Waited, Watch, WokenKey};
pub use link::{Link, LinkState};
pub use observe::{Counters, Event, Observer};
pub use outcome::Outcome;
pub use poll_mode::{PollMode, PollModeChange, PollModeState};
pub use poll_mode_options::{FallbackCause, FallbackCauses, PollModeOptions};
pub use refused::Refused;
pub use source::{Round, RoundFailed, RoundResult, Source, WaitingDemand};
