//! The answer of a pop, and the acks for it.

use reveille_testkit::scenario::wire::{Reply, Wire};
use serde::Deserialize;

/// One message, without the payload, which no consumer here reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message<'a> {
    pub(crate) transaction_id: &'a str,
    partition_id: &'a str,
    lease_id: &'a str,
    consumer_group: &'a str,
}

#[derive(Deserialize)]
struct Popped<'a> {
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct AckAnswer {
    success: bool,
}

/// The body of an answer with messages; empty when there was nothing.
pub(crate) fn body(reply: Reply) -> anyhow::Result<Vec<u8>> {
    if reply.status == 204 { Ok(Vec::new()) } else { reply.expect(200) }
}

/// The messages in such a body.
pub(crate) fn messages(body: &[u8]) -> anyhow::Result<Vec<Message<'_>>> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    Ok(serde_json::from_slice::<Popped<'_>>(body)?.messages)
}

impl Message<'_> {
    /// Its item in an ack, as JSON.
    pub(crate) fn acknowledgement(&self) -> String {
        let Self { transaction_id, partition_id, lease_id, consumer_group } = self;
        format!(
            r#"{{"transactionId":"{transaction_id}","partitionId":"{partition_id}","leaseId":"{lease_id}","consumerGroup":"{consumer_group}","status":"completed"}}"#
        )
    }
}

/// Every message by its name, as official clients do. Fails if any is refused.
pub(crate) async fn ack(wire: &mut Wire, acknowledgements: &[String]) -> anyhow::Result<()> {
    let body = format!(r#"{{"acknowledgments":[{}]}}"#, acknowledgements.join(","));
    let answer = wire.post("/api/v1/ack/batch", &body).await?.expect(200)?;
    let answers: Vec<AckAnswer> = serde_json::from_slice(&answer)?;
    let all = answers.len() == acknowledgements.len() && answers.iter().all(|answer| answer.success);
    anyhow::ensure!(all, "an ack was refused: {}", String::from_utf8_lossy(&answer));
    Ok(())
}
