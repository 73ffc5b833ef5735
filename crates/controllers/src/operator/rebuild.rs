//! Rebuilds scalers whose Secrets, ConfigMaps or ServiceAccounts with a role have changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::stream::StreamExt as _;
use keda::environment::SourceRef;

use super::context::OperatorContext;
use super::id::ResourceId;

/// Objects whose versions are read concurrently.
const MAX_CONCURRENT_CHECKS: usize = 8;

/// Reads the versions of all such objects in use; scalers that were built from another version are rebuilt.
pub(crate) async fn rebuild_after_changes(context: Arc<OperatorContext>) {
    let mut users: HashMap<SourceRef, Vec<ResourceId>> = HashMap::new();
    for (id, entry) in context.all_entries() {
        let used = entry.scalers().into_iter().flat_map(|scalers| scalers.used());
        let used: HashSet<SourceRef> = used.map(|(object, _)| object).collect();
        for object in used {
            users.entry(object).or_default().push(id.clone());
        }
    }
    let check = |(object, users): (SourceRef, Vec<ResourceId>)| {
        let context = context.clone();
        async move {
            let Some(version) = context.builder.credentials.current_version(&object).await else { return };
            for id in users {
                if let Some(scalers) = context.known_entry(&id).and_then(|entry| entry.scalers()) {
                    scalers.rebuild_after_change(&object, &version);
                }
            }
        }
    };
    let checks = futures::stream::iter(users).map(check).buffer_unordered(MAX_CONCURRENT_CHECKS);
    checks.collect::<Vec<()>>().await;
}
