//! The gate `StaleControllerConsistencyHPA`: an autoscaler whose watched object is older than our own last status write is not
//! reconciled, since its conditions and its last scale time are out of date (docs/spec/hpa.md 11.4).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use cluster::AutoscalerKey;
use locks::MutexExt as _;

use super::autoscaler::AutoscalerEntry;

/// The `resourceVersion` of our last status write to each autoscaler.
#[derive(Debug, Default)]
pub(crate) struct WrittenStatuses(Mutex<HashMap<AutoscalerKey, WrittenStatus>>);

#[derive(Debug)]
struct WrittenStatus {
    uid: String,
    version: u64,
}

/// The watched object is older than our last write. The text is that of Kubernetes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("read version: {read} is not as new as written version: {written} for group resource {resource}")]
pub(crate) struct StaleObject {
    read: u64,
    written: u64,
    resource: &'static str,
}

impl WrittenStatuses {
    fn lock(&self) -> MutexGuard<'_, HashMap<AutoscalerKey, WrittenStatus>> {
        self.0.locked()
    }

    /// Records a write. A version that is not a number cannot be compared, and is not recorded.
    pub(crate) fn wrote(&self, entry: &AutoscalerEntry, version: &str) {
        let Ok(version) = version.parse() else { return };
        let uid = entry.object.metadata().uid.clone();
        self.lock().insert(entry.key.clone(), WrittenStatus { uid, version });
    }

    /// Whether the watched object is as new as our last write to it. An object of another uid was created since.
    pub(crate) fn check(&self, entry: &AutoscalerEntry) -> Result<(), StaleObject> {
        let meta = entry.object.metadata();
        let (written, Ok(read)) = (self.lock(), meta.resource_version.parse()) else { return Ok(()) };
        match written.get(&entry.key) {
            Some(WrittenStatus { uid, version }) if *uid == meta.uid && read < *version => {
                Err(StaleObject { read, written: *version, resource: entry.group_resource() })
            }
            _ => Ok(()),
        }
    }

    /// Forgets a deleted autoscaler.
    pub(crate) fn forget(&self, key: &AutoscalerKey) {
        self.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uid: &str, version: &str) -> AutoscalerEntry {
        let mut hpa = api::autoscaling::v2::HorizontalPodAutoscaler::default();
        (hpa.metadata.namespace, hpa.metadata.name) = ("shop".into(), "web".into());
        (hpa.metadata.uid, hpa.metadata.resource_version) = (uid.into(), version.into());
        AutoscalerEntry::of_hpa(hpa)
    }

    #[test]
    fn an_object_older_than_our_write_is_stale() {
        let written = WrittenStatuses::default();
        assert_eq!(written.check(&entry("a", "9")), Ok(()), "nothing was written");
        written.wrote(&entry("a", "9"), "12");
        let stale = written.check(&entry("a", "10")).unwrap_err();
        assert_eq!(
            stale.to_string(),
            "read version: 10 is not as new as written version: 12 for group resource \
             horizontalpodautoscalers.autoscaling"
        );
        for fresh in [entry("a", "12"), entry("a", "100"), entry("b", "10"), entry("a", "unknown")] {
            assert_eq!(written.check(&fresh), Ok(()));
        }
        written.forget(&AutoscalerKey::hpa("shop", "web"));
        assert_eq!(written.check(&entry("a", "10")), Ok(()));
    }

    #[test]
    fn versions_that_cannot_be_compared_never_block() {
        let written = WrittenStatuses::default();
        written.wrote(&entry("a", "9"), "opaque");
        assert_eq!(written.check(&entry("a", "9")), Ok(()));
    }
}
