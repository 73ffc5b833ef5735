//! Checkpoints of consumer groups in blobs, without IO.

use http::HeaderMap;
use serde_json::Value;

use super::query::HubAddress;
use crate::ScalerError;
use crate::azure_storage::check_storage_answer;
use crate::responses::{json, kind};
use crate::web::path_escaped;
use crate::xml;

/// The program that writes the checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointStrategy {
    AzureFunction,
    BlobMetadata,
    GoSdk,
    Dapr,
    /// Event Processor Host, and the old library for Python.
    ProcessorHost,
}

impl CheckpointStrategy {
    /// The strategy with this name. Words that are no strategy are taken for the default, as in KEDA.
    pub(super) fn of(name: &str, container: &str) -> Self {
        match name {
            "goSdk" => Self::GoSdk,
            "dapr" => Self::Dapr,
            "blobMetadata" => Self::BlobMetadata,
            "azureFunction" => Self::AzureFunction,
            _ if container.is_empty() => Self::AzureFunction,
            _ => Self::ProcessorHost,
        }
    }

    /// The path of the blob with the checkpoint of a partition.
    pub(super) fn path(self, container: &str, hub: &HubAddress, group: &str, partition: &str) -> String {
        let HubAddress { namespace, name, .. } = hub;
        let small = group.to_lowercase();
        let joined = match self {
            Self::Dapr => format!("dapr-{name}-{group}-{partition}"),
            _ => String::new(),
        };
        let segments: Vec<&str> = match self {
            Self::AzureFunction => vec!["azure-webjobs-eventhub", namespace, name, group, partition],
            Self::BlobMetadata => vec![container, namespace, name, &small, "checkpoint", partition],
            Self::GoSdk => vec![container, partition],
            Self::Dapr => vec![container, &joined],
            Self::ProcessorHost => vec![container, group, partition],
        };
        let segments: Vec<String> = segments.into_iter().map(path_escaped).collect();
        format!("/{}", segments.join("/"))
    }

    /// The number of the last processed event; none if there is no checkpoint.
    pub(super) fn number(
        self,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Option<i64>, ScalerError> {
        if status == 404 {
            let code = xml::element(&String::from_utf8_lossy(body), "Code");
            if matches!(code.as_deref(), Some("BlobNotFound" | "ContainerNotFound")) {
                return Ok(None);
            }
        }
        check_storage_answer("blob storage", status, body)?;
        let number = match self {
            Self::BlobMetadata => {
                let text = headers.get("x-ms-meta-sequencenumber").and_then(|value| value.to_str().ok());
                let text = text.ok_or_else(|| scaler_error!("sequencenumber on blob not found"))?;
                text.parse().map_err(|_| scaler_error!("sequencenumber is not a valid int64 value"))?
            }
            Self::GoSdk | Self::Dapr => {
                let answer = json(body)?;
                let checkpoint = member(&answer, "checkpoint");
                sequence(checkpoint.and_then(|checkpoint| member(checkpoint, "sequenceNumber")))?
            }
            Self::AzureFunction => sequence(member(&json(body)?, "SequenceNumber"))?,
            Self::ProcessorHost => {
                let answer = json(body)?;
                let own = member(&answer, "SequenceNumber").filter(|number| number.as_i64() != Some(0));
                let python = || member(&answer, "sequence_number");
                sequence(own.or_else(python).or_else(|| member(&answer, "SequenceNumber")))?
            }
        };
        Ok(Some(number))
    }
}

/// A member of an object; names match in any case, as in Go.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let members = object.as_object()?;
    members
        .get(name)
        .or_else(|| members.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

fn sequence(found: Option<&Value>) -> Result<i64, ScalerError> {
    found
        .and_then(Value::as_i64)
        .ok_or_else(|| scaler_error!("the checkpoint has {} instead of a sequence number", kind(found)))
}
