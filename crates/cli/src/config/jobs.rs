//! The settings of jobs: an operator's switches, for every process that uses jobs.

use reveille::jobs::JobsOptions;

use super::reader::Reader;

pub(super) fn read(read: &mut Reader<'_>) -> JobsOptions {
    let options = JobsOptions::default().notify(read.switch("jobs.notify", true, false));
    match read.some_pause("jobs.fallback_interval") {
        Some(interval) => options.fallback_interval(interval),
        None => options,
    }
}
