//! The routes of queues over real sockets and a real database.

mod ack;
mod admin;
mod busy;
mod configure;
mod disconnect_fault;
mod drain;
mod foreign;
mod ghosts_fault;
mod hostile;
mod limits;
mod long_poll;
mod nodes;
mod outage;
mod pop;
mod push;
mod refused;
mod support;
mod transaction;
mod weight_fault;
