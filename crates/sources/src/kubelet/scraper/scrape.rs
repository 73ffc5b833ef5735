//! One node: its address, the request, and what is read from the answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use futures::FutureExt as _;
use tokio::time::Instant;

use crate::inventory::Node;
use crate::kubelet::client::{Client, Failure, Peer};
use crate::kubelet::report::Cause;
use crate::kubelet::text::{self, ParseError};
use crate::kubelet::{Scrape, address};

/// How it went.
pub(super) struct Outcome {
    pub(super) node: Arc<Node>,
    /// The connection, for the next time.
    pub(super) peer: Peer,
    pub(super) took: Duration,
    pub(super) scrape: Result<Scrape, Failure>,
}

/// Asks one node.
pub(super) async fn scrape(
    client: Arc<Client>,
    rules: Arc<address::Rules>,
    compat: Compat,
    node: Arc<Node>,
    mut peer: Peer,
) -> Outcome {
    let begun = Instant::now();
    // A fault of ours must cost one scrape, not the node.
    let asked = AssertUnwindSafe(ask(&client, &rules, compat, &node, &mut peer)).catch_unwind().await;
    let scrape = asked.unwrap_or_else(|_| {
        let words = "a fault in this program, not in the kubelet";
        Err(Failure::new(Cause::Other(words.into()), words))
    });
    Outcome { node, peer, took: begun.elapsed(), scrape }
}

async fn ask(
    client: &Client,
    rules: &address::Rules,
    compat: Compat,
    node: &Node,
    peer: &mut Peer,
) -> Result<Scrape, Failure> {
    let place = address::place(node, rules)
        .map_err(|error| Failure::new(Cause::NoAddress { types: error.types.clone() }, error))?;
    let answer = client.get(&node.name, &place, peer).await?;
    text::parse(answer.body.bytes(), answer.sent, compat).map_err(|error| {
        let cause = match &error {
            ParseError::NotMeasured => Cause::KubeletCannotMeasure,
            ParseError::Nothing => Cause::NotMetrics("nothing about the node or a container".into()),
            ParseError::Line { line, flaw, .. } => Cause::NotMetrics(format!("line {line}: {flaw}").into()),
        };
        Failure::new(cause, error)
    })
}
