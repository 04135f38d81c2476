//! The HTTP door over real sockets and a real database.

mod bad_heads;
mod drain;
mod health;
mod health_outage;
mod limits;
mod routes;
mod support;
