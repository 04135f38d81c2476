//! One message, as clients spell it.
//!
//! Unknown fields are ignored, because clients send more than a server needs. Fields that would
//! change what the message means are refused: a `delay` that is ignored, or a `transaction_id` that
//! keeps out no duplicate, would be noticed too late.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny};
use serde_json::value::RawValue;

use crate::wire::json::present;

#[derive(Debug)]
pub(in crate::api) struct Item<'b> {
    pub(in crate::api) queue: Option<String>,
    pub(in crate::api) partition: Option<String>,
    pub(in crate::api) payload: Option<&'b RawValue>,
    pub(in crate::api) data: Option<&'b RawValue>,
    pub(in crate::api) transaction_id: Option<String>,
    pub(in crate::api) trace_id: Option<String>,
}

/// A field that no message has, and that its client would rely on.
#[derive(Debug, Default)]
struct Unserved;

impl<'de> Deserialize<'de> for Unserved {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<IgnoredAny>::deserialize(deserializer)? {
            None => Ok(Self),
            Some(_) => Err(D::Error::custom(
                "is no field of a message, and without it something else would happen than is meant; \
                 there are queue, partition, payload, data, transactionId and traceId",
            )),
        }
    }
}

macro_rules! spelt {
    ($($unserved:ident $(= $name:literal)?),* $(,)?) => {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[expect(dead_code, reason = "a field that is not served is refused while it is read")]
        struct Spelt<'b> {
            queue: Option<String>,
            partition: Option<String>,
            #[serde(borrow, default, deserialize_with = "present")]
            payload: Option<&'b RawValue>,
            #[serde(borrow, default, deserialize_with = "present")]
            data: Option<&'b RawValue>,
            transaction_id: Option<String>,
            trace_id: Option<String>,
            $(
                #[serde(default $(, rename = $name)?)]
                $unserved: Unserved,
            )*
        }
    };
}

spelt! {
    delay, delay_ms, delay_seconds, deliver_at, not_before, run_at, schedule_at, scheduled_at, scheduled_for, visible_at,
    expires_at, ttl, ttl_seconds, priority, transaction_id_in_snake_case = "transaction_id",
    transaction_id_in_capitals = "transactionID", partition_key,
}

impl<'de: 'b, 'b> Deserialize<'de> for Item<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spelt { queue, partition, payload, data, transaction_id, trace_id, .. } = Spelt::deserialize(deserializer)?;
        Ok(Self { queue, partition, payload, data, transaction_id, trace_id })
    }
}
