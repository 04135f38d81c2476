//! Announces claimable jobs: to workers of this process at once, to other nodes through the
//! broadcaster.
//!
//! Everything that can make a job claimable calls a method here after its commit: docs/jobs.md
//! lists them. With notifications off, none is sent or received: the hub knows that there is no
//! source of hints, and workers claim every fallback interval.
//!
//! Next: [`source`], which wakes the queues; then [`super::claim`].

mod source;

use std::sync::Arc;
use std::time::Duration;

use reveille_wake::{Cause, Runner};
use tokio::sync::Notify;

use super::event::Reporter;
use super::options::JobsOptions;
use crate::service::{Context, Notifier};
use source::About;
pub(super) use source::{JobSource, Queue};

#[derive(Debug)]
pub(super) struct JobNotifier {
    notifier: Arc<Notifier<JobSource>>,
}

impl JobNotifier {
    pub(super) fn new(
        context: &Arc<Context>,
        options: &JobsOptions,
        reporter: &Arc<Reporter>,
    ) -> (Self, Runner<Queue>) {
        let (source, runner) = JobSource::new(context.database(), options, reporter);
        let announce = if options.notify { Notifier::new } else { Notifier::only_here };
        (Self { notifier: Arc::new(announce(context, &Arc::new(source))) }, runner)
    }

    /// Jobs of the queue may be claimable now: enqueued, given back, redriven, resumed, moved to
    /// another priority.
    pub(super) fn ready(&self, queue: &str) {
        self.notifier.announce(&About::Queue(queue.into()), Cause::Pushed);
    }

    /// A job of the queue will be claimable after `delay`: a schedule, a retry, a snooze.
    pub(super) fn ready_after(&self, queue: &str, delay: Duration) {
        if delay.is_zero() {
            self.ready(queue);
        } else {
            self.notifier.announce_after(&About::Queue(queue.into()), delay);
        }
    }

    /// Leases were made that end after `lease`: if their holder dies, others must claim then.
    pub(super) fn leased(&self, queue: &Queue, lease: Duration) {
        self.notifier.leased(&About::Queue(Arc::clone(queue)), lease);
    }

    /// A worker is to check the jobs it holds. Without notifications a worker of another process
    /// does so with its next renewal.
    pub(super) fn attend(&self, worker: &str) {
        self.notifier.announce(&About::Worker(worker.into()), Cause::Pushed);
    }

    /// Waits until every hint has been sent.
    pub(super) async fn flush(&self) {
        self.notifier.flush().await;
    }

    /// The same for a program that only enqueues and may exit right after.
    pub(super) async fn flush_if_alone(&self) {
        self.notifier.flush_if_alone().await;
    }

    pub(super) fn notifier(&self) -> &Arc<Notifier<JobSource>> {
        &self.notifier
    }

    /// From here on the worker is woken when it is to check its jobs.
    pub(super) fn enlist(&self, worker: &Arc<str>, attend: &Arc<Notify>) {
        self.notifier.source().enlist(worker, attend);
    }

    pub(super) fn dismiss(&self, worker: &str) {
        self.notifier.source().dismiss(worker);
    }
}
