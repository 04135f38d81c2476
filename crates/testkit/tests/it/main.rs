//! The test kit, tested: a kit that lies makes every other test a lie.

mod database;
mod events;
mod fault_proxy;
