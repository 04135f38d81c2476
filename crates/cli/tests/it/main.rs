//! Each command and its failures, run as a process.

mod config;
mod connections;
mod database_faults;
mod doctor;
mod documents;
mod forged;
mod full_disk_faults;
mod install;
mod jobs;
mod messages;
mod migrate;
mod outage_fault;
mod postgres;
mod serve;
mod serve_burst_fault;
mod serve_crash;
mod serve_files;
mod serve_private;
mod serve_wait;
mod support;
mod systemd;
mod usage;
