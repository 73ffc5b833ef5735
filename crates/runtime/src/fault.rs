//! Faults that tests inject into a running controller. No flag and no configuration reaches this module.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use locks::MutexExt as _;
use tokio::sync::Notify;

/// What happens to a watch task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    /// The task panics.
    Panic,
    /// The task ends, as if its stream had ended.
    End,
    /// The task panics, and again after each restart until [`FaultInjector::clear`].
    PanicRepeatedly,
    /// The task ends, and again after each restart until [`FaultInjector::clear`].
    EndRepeatedly,
}

/// Injects faults. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub struct FaultInjector(Arc<Faults>);

#[derive(Debug, Default)]
struct Faults {
    pending: Mutex<PendingFaults>,
    injected: Notify,
}

#[derive(Debug, Default)]
struct PendingFaults {
    watches: HashMap<String, WatchFault>,
    reconciles: HashSet<String>,
}

impl FaultInjector {
    /// Lets the watch of `resource` fail now.
    pub fn fail_watch(&self, resource: &str, fault: WatchFault) {
        self.pending().watches.insert(resource.to_owned(), fault);
        self.0.injected.notify_waiters();
    }

    /// Lets every reconcile of the object with this key panic, until [`FaultInjector::clear`].
    pub fn panic_in_reconcile(&self, key: &str) {
        self.pending().reconciles.insert(key.to_owned());
    }

    /// Removes all faults.
    pub fn clear(&self) {
        *self.pending() = PendingFaults::default();
    }

    /// Panics if a test injected this fault.
    pub fn check_reconcile(&self, key: &impl ToString) {
        let is_faulty = {
            let pending = self.pending();
            !pending.reconciles.is_empty() && pending.reconciles.contains(&key.to_string())
        };
        if is_faulty {
            inject_panic();
        }
    }

    /// Waits until the watch of `resource` is to end; panics if it is to panic.
    pub(crate) async fn watch_fault(&self, resource: &str) {
        loop {
            let injected = self.0.injected.notified();
            let fault = {
                let mut pending = self.pending();
                match pending.watches.get(resource) {
                    Some(fault @ (WatchFault::PanicRepeatedly | WatchFault::EndRepeatedly)) => Some(*fault),
                    _ => pending.watches.remove(resource),
                }
            };
            match fault {
                Some(WatchFault::Panic | WatchFault::PanicRepeatedly) => inject_panic(),
                Some(WatchFault::End | WatchFault::EndRepeatedly) => return,
                None => injected.await,
            }
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingFaults> {
        self.0.pending.locked()
    }
}

fn inject_panic() {
    std::panic::resume_unwind(Box::new("injected fault"));
}
