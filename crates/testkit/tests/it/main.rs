//! The test kit, tested: every other test relies on it.

mod database;
mod events;
mod fault_proxy;
