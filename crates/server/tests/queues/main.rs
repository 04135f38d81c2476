//! The routes of queues over real sockets and a real database.

mod ack;
mod admin;
mod busy;
mod configure;
mod disconnect_fault;
mod drain;
mod hostile;
mod limits;
mod long_poll;
mod nodes;
mod outage;
mod pop;
mod push;
mod support;
mod transaction;
