//! The HTTP interface over real sockets and a real database.

mod bad_requests;
mod drain;
mod health;
mod health_outage;
mod limits;
mod routes;
mod support;
