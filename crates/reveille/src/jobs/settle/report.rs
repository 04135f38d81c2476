//! What observers see of a settlement.

use super::{Ending, Settled, Settlement};
use crate::jobs::context::JobsContext;
use crate::jobs::event::JobEvent;
use crate::jobs::lifecycle::State;
use crate::jobs::outcome::{Failure, Outcome};

/// Reports what became of a settlement. `state` is the job's state since then, if the statement
/// returned one.
pub(super) fn report(context: &JobsContext, job: &Settlement, settled: Settled, state: Option<State>) {
    let event = match settled {
        Settled::LeaseLost if job.or_lost => return,
        Settled::LeaseLost => JobEvent::LeaseLost { job: job.about.clone() },
        Settled::Recorded => recorded(job, state),
    };
    context.reporter.emit(&event);
}

fn recorded(job: &Settlement, state: Option<State>) -> JobEvent {
    let (about, took) = (job.about.clone(), job.took);
    let Ending::By(outcome) = &job.ending else {
        return JobEvent::Settled { job: about, state: state.unwrap_or(State::Scheduled) };
    };
    match (outcome, state.unwrap_or(State::Done)) {
        (Outcome::Done | Outcome::DoneWith(_), _) => JobEvent::Completed { job: about, took },
        // One that was to be cancelled has not failed, whatever its handler says.
        (
            Outcome::Retry(failure) | Outcome::RetryIn(failure, _) | Outcome::Dead(failure),
            state @ (State::Scheduled | State::Dead),
        ) => {
            let Failure { code, message } = failure.clone();
            JobEvent::Failed { job: about, code, message, state, took }
        }
        (_, state) => JobEvent::Settled { job: about, state },
    }
}
