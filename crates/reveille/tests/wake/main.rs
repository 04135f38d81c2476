//! The wake engine on real PostgreSQL: several nodes, one plain table, and every way to lose a wake-up.

mod support;

mod dues;
mod hints;
mod link_faults;
mod node_rows;
mod pooler_faults;
