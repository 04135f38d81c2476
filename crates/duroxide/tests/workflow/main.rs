//! Whole workflows on duroxide's own runtime: under load, behind a pooler, while servers restart,
//! answers are lost, and programs are killed.

mod crash;
mod example_crash;
mod fault_orders;
mod outage;
mod pooled;
mod stress;
