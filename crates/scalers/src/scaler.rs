//! What a scaler can be asked.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use api::autoscaling::v2::MetricSpec;
use quantity::Quantity;

/// An answer that may take a while. Whoever asks sets the deadline; dropping the future is always safe.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// So much of an error is told, in bytes.
const LONGEST: usize = 1_500;

/// Why there is no answer: a sentence that stands in events and conditions, without secrets, and no longer than there is room
/// for in them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);

impl Error {
    /// In these words; of many only the first, which say what is meant.
    pub fn new(text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push('…');
        }
        Self(text)
    }

    /// `{what}: {self}`.
    pub fn inside(self, what: impl std::fmt::Display) -> Self {
        Self::new(format!("{what}: {}", self.0))
    }
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.0
    }
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    /// The metric's name, as asked for.
    pub name: String,
    /// The value.
    pub value: Quantity,
}

/// What a source said of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Its values; the HPA adds them up.
    pub values: Vec<MetricValue>,
    /// Whether there is something to do.
    pub active: bool,
}

impl Reading {
    /// One value.
    pub fn one(name: &str, value: Quantity, active: bool) -> Self {
        Self { values: vec![MetricValue { name: name.to_owned(), value }], active }
    }
}

/// A trigger, ready to be asked. It is cheap to make: connections are made when it is first asked, and shared
/// ([`crate::backends`]).
pub trait Scaler: Send + Sync {
    /// The metrics as they stand in an HPA, without selector: `s{index}-{name}` and target.
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>>;

    /// The values of one metric, and whether the trigger is active.
    fn read<'a>(&'a self, metric: &'a str) -> Answer<'a, Reading>;

    /// For scalers that tell of activity themselves: tells until the returned future is dropped. `None` for all others.
    /// Reconnects by itself; never ends.
    fn push(
        self: Arc<Self>,
        _tell: tokio::sync::mpsc::Sender<bool>,
    ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_is_longer_than_a_condition_has_room_for() {
        assert_eq!(Error::new("short").to_string(), "short");
        // Of characters that are cut in the middle, too.
        for letter in ["x", "ä", "日"] {
            let long = Error::new(letter.repeat(5_000)).inside("a scaler").inside("a trigger");
            assert!(long.0.len() <= LONGEST + '…'.len_utf8(), "{}", long.0.len());
            assert!(long.0.starts_with("a trigger: a scaler: ") && long.0.ends_with('…'), "{long}");
        }
    }
}
