//! A shared object in an [`ObjectStore`](super::ObjectStore).

use std::ops::Deref;
use std::sync::Arc;

use api::keda::{CloudEventSource, ScaledJob, ScaledObject, TriggerAuthentication};
use runtime::Versioned;

/// An object that readers of the store share.
#[derive(Debug)]
pub(crate) struct Stored<T>(Arc<T>);

impl<T> Stored<T> {
    pub(super) fn new(object: T) -> Self {
        Self(Arc::new(object))
    }

    /// The object, for a reader that keeps it.
    pub(super) fn to_arc(&self) -> Arc<T> {
        Arc::clone(&self.0)
    }
}

impl<T> From<Arc<T>> for Stored<T> {
    fn from(object: Arc<T>) -> Self {
        Self(object)
    }
}

impl<T> Deref for Stored<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}

macro_rules! versioned {
    ($($object:ty),*) => {
        $(impl Versioned for Stored<$object> {
            fn resource_version(&self) -> &str {
                &self.0.metadata.resource_version
            }
        })*
    };
}
versioned!(ScaledObject, ScaledJob, TriggerAuthentication, CloudEventSource);
