//! Names in paths, percent-decoded, and ids.

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use reveille::messages::{GroupName, LeaseId, NameError, PartitionName, PartitionUid, QueueName};
use serde::de::DeserializeOwned;

use crate::problem::Problem;

const UNREADABLE: Problem =
    Problem::new(StatusCode::BAD_REQUEST, "invalid_name", "a name in the path is not percent-encoded UTF-8");

/// The parameters of a path.
#[derive(Debug)]
pub(crate) struct Names<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Names<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Self(names)),
            Err(_) => Err(UNREADABLE),
        }
    }
}

pub(crate) fn queue(name: String) -> Result<QueueName, Problem> {
    QueueName::new(name).map_err(of_name)
}

pub(crate) fn partition(name: String) -> Result<PartitionName, Problem> {
    PartitionName::new(name).map_err(of_name)
}

/// No name, or an empty one, means the group of a plain queue.
pub(crate) fn group(name: Option<String>) -> Result<GroupName, Problem> {
    match name {
        Some(name) if !name.is_empty() => GroupName::new(name).map_err(of_name),
        _ => Ok(GroupName::queue_mode()),
    }
}

/// `None` for an id that this server cannot have given out.
pub(crate) fn partition_uid(id: &str) -> Option<PartitionUid> {
    id.parse().ok()
}

/// `None` for an id that this server cannot have given out.
pub(crate) fn lease(id: &str) -> Option<LeaseId> {
    id.parse().ok()
}

pub(crate) fn of_name(error: NameError) -> Problem {
    Problem { status: StatusCode::BAD_REQUEST, code: "invalid_name", sentence: error.to_string().into() }
}
