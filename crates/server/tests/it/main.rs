//! The HTTP door over real sockets and a real database.

mod drain;
mod health;
mod health_outage;
mod limits;
mod routes;
mod support;
