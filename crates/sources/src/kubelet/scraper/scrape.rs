//! One scrape: address, request and parsing.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use futures::FutureExt as _;
use tokio::time::Instant;

use crate::inventory::Node;
use crate::kubelet::client::{KubeletClient, KubeletConnection, ScrapeError};
use crate::kubelet::report::ScrapeErrorCause;
use crate::kubelet::text::{self, ParseError};
use crate::kubelet::{Scrape, address};

/// Result of one scrape.
pub(super) struct ScrapeOutcome {
    pub(super) node: Arc<Node>,
    /// Connection, for the next scrape.
    pub(super) connection: KubeletConnection,
    pub(super) took: Duration,
    pub(super) scrape: Result<Scrape, ScrapeError>,
}

/// Scrapes one node.
pub(super) async fn scrape(
    client: Arc<KubeletClient>,
    rules: Arc<address::AddressRules>,
    compat: Compat,
    node: Arc<Node>,
    mut connection: KubeletConnection,
) -> ScrapeOutcome {
    let started = Instant::now();
    // A panic fails this scrape only; the loop continues.
    let outcome =
        AssertUnwindSafe(try_scrape(&client, &rules, compat, &node, &mut connection)).catch_unwind().await;
    let scrape = outcome.unwrap_or_else(|_| {
        let words = "the scrape panicked; this is a bug in plimsoll, not in the kubelet";
        Err(ScrapeError::new(ScrapeErrorCause::Other(words.into()), words))
    });
    ScrapeOutcome { node, connection, took: started.elapsed(), scrape }
}

async fn try_scrape(
    client: &KubeletClient,
    rules: &address::AddressRules,
    compat: Compat,
    node: &Node,
    connection: &mut KubeletConnection,
) -> Result<Scrape, ScrapeError> {
    let target = address::kubelet_address(node, rules).map_err(|error| {
        ScrapeError::new(ScrapeErrorCause::NoAddress { types: error.types.clone() }, error)
    })?;
    let answer = client.get(&node.name, &target, connection).await?;
    text::parse(answer.body.bytes(), answer.sent, compat).map_err(|error| {
        let cause = match &error {
            ParseError::NotMeasured => ScrapeErrorCause::KubeletCannotMeasure,
            ParseError::Nothing => {
                ScrapeErrorCause::NotMetrics("nothing about the node or a container".into())
            }
            ParseError::Line { line, flaw, .. } => {
                ScrapeErrorCause::NotMetrics(format!("line {line}: {flaw}").into())
            }
        };
        ScrapeError::new(cause, error)
    })
}
