//! The provider by itself: what wakes a waiting fetch, which fetch is woken, what it costs, and
//! what happens to work when a caller, a connection or a program goes away. Each case of [`gaps`]
//! was up to 29 s late with a provider that only inserts wake; here each is found in a fraction of
//! a second, although the fetch would wait for a minute.

mod ack_faults;
mod counted;
mod dropped_faults;
mod fault_harness;
mod gaps;
mod hints;
mod idle;
mod nodes;
mod odd_text;
mod pool;
mod relay_faults;
mod schemas;
mod unwaiting;
mod waits;
