//! The rows of a claim, put together as turns.
//!
//! Owns the meaning of the columns that `sql/orchestrations/claim.sql` and `content.sql` return;
//! the header of the first has them as a table. A row is one part of a turn, and its lock token
//! says of which.
//!
//! Next: [`super::item`].

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::Row;

use super::Turn;
use crate::nul;
use crate::queue::due;
use crate::token::TurnToken;

/// The first row: what the claim found altogether.
pub(super) struct Summary {
    pub(super) picked: i64,
    pub(super) contended: bool,
    pub(super) due: Option<Duration>,
}

impl Summary {
    pub(super) fn of(row: &Row) -> Self {
        Self { picked: row.get("number"), contended: row.get("contended"), due: due(row.get("due_s")) }
    }
}

/// What a row is, by its column `part`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Summary,
    Turn,
    Message,
    Event,
    Value,
}

impl Part {
    fn of(row: &Row) -> Self {
        match row.get::<_, i32>("part") {
            0 => Self::Summary,
            1 => Self::Turn,
            2 => Self::Message,
            3 => Self::Event,
            _ => Self::Value,
        }
    }
}

/// The turns of a claim, and the tokens of those whose content the claim saw as it was before their
/// last turn ended.
pub(super) fn read(rows: &[Row]) -> (Vec<Turn>, Vec<TurnToken>) {
    let (mut turns, mut outdated) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| Part::of(row) == Part::Turn) {
        let token = TurnToken { nonce: row.get("lock_token"), instance: row.get("instance_id") };
        if !row.get::<_, bool>("is_current") {
            outdated.push(token.clone());
        }
        turns.push(Turn::empty(token));
    }
    (fill(turns, rows), outdated)
}

/// Adds each row to its turn. The parts of a turn come in their order.
pub(super) fn fill(mut turns: Vec<Turn>, rows: &[Row]) -> Vec<Turn> {
    let positions: HashMap<String, usize> =
        turns.iter().enumerate().map(|(position, turn)| (turn.token.nonce.clone(), position)).collect();
    for row in rows {
        let position = row.get::<_, Option<&str>>("lock_token").and_then(|token| positions.get(token));
        if let Some(turn) = position.and_then(|position| turns.get_mut(*position)) {
            turn.add(row);
        }
    }
    turns
}

impl Turn {
    fn add(&mut self, row: &Row) {
        match Part::of(row) {
            Part::Summary => {}
            Part::Turn => {
                self.execution = row.get("number");
                self.instance = row.get::<_, Option<String>>("content").map(|name| (name, row.get("detail")));
            }
            Part::Message => {
                self.messages.push(row.get("content"));
                self.attempt = self.attempt.max(u32::try_from(row.get::<_, i32>("attempt_count")).unwrap_or(0));
            }
            Part::Event => self.history.push(row.get("content")),
            Part::Value => {
                let (key, value) = (nul::read(row.get("content")), nul::read(row.get("detail")));
                self.values.push((key, value, row.get("number")));
            }
        }
    }
}
