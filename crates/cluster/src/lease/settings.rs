//! Settings of the leader election.

use std::net::SocketAddr;
use std::time::Duration;

/// client-go's jitter factor: a candidate waits up to so many retry periods longer, and the renew deadline must be longer than
/// so many retry periods.
const JITTER_FACTOR: f64 = 1.2;

/// Settings of the leader election, with the defaults of client-go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// The identity of this process; unique.
    pub identity: String,
    /// How long others wait after the last renewal of a leader.
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it gives up its leadership.
    pub renew_deadline: Duration,
    /// Time between two tries.
    pub retry_period: Duration,
    /// Where this process serves the other replicas while it is the leader; it is written into the lease.
    pub address: Option<SocketAddr>,
}

/// Invalid settings, named by the flags that set them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidLeaseSettings(String);

impl LeaseSettings {
    /// The settings of client-go: 15 s, 10 s, 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            address: None,
        }
    }

    /// Refuses settings with which an election cannot work, or would be unsafe.
    pub fn validate(&self) -> Result<(), InvalidLeaseSettings> {
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        for (flag, text) in [
            ("--leader-elect-resource-namespace", &self.namespace),
            ("--leader-elect-resource-name", &self.name),
        ] {
            if text.is_empty() {
                return Err(InvalidLeaseSettings(format!(
                    "{flag} must not be empty; set it, or leave it out"
                )));
            }
        }
        if self.identity.is_empty() {
            return Err(InvalidLeaseSettings("the identity of a candidate must not be empty".to_owned()));
        }
        for (flag, value, default) in [
            ("--leader-elect-lease-duration", lease, "15s"),
            ("--leader-elect-renew-deadline", renew, "10s"),
            ("--leader-elect-retry-period", retry, "2s"),
        ] {
            if value.is_zero() {
                return Err(InvalidLeaseSettings(format!(
                    "{flag} must be greater than zero; leave it out for {default}"
                )));
            }
        }
        if lease <= renew {
            return Err(InvalidLeaseSettings(format!(
                "--leader-elect-lease-duration ({lease:?}) must be greater than --leader-elect-renew-deadline \
                 ({renew:?}), or another process could take over before this one has stopped; raise the former or \
                 lower the latter"
            )));
        }
        // Computed with integers, because durations may have any size here.
        if renew.saturating_mul(10) <= retry.saturating_mul(12) {
            return Err(InvalidLeaseSettings(format!(
                "--leader-elect-renew-deadline ({renew:?}) must be greater than {JITTER_FACTOR} times \
                 --leader-elect-retry-period ({retry:?}), or a single slow answer would end the leadership; raise the \
                 former or lower the latter"
            )));
        }
        Ok(())
    }

    /// These settings with durations cut so that adding them to a time cannot overflow.
    pub(super) fn bounded(mut self) -> Self {
        let longest = Duration::from_secs(i32::MAX as u64);
        self.lease_duration = self.lease_duration.min(longest);
        self.renew_deadline = self.renew_deadline.min(longest);
        self
    }

    /// The duration written into the lease: rounded up to whole seconds, so that others do not wait less than this process expects.
    pub(super) fn lease_seconds(&self) -> u64 {
        let rounded = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        rounded.clamp(1, i32::MAX as u64)
    }

    /// How long after the start of a successful renewal this process may write: the lease duration less a margin, which is half of
    /// the time between renew deadline and lease duration, for clocks that drift and for writes under way.
    pub(super) fn write_window(&self) -> Duration {
        let lease = Duration::from_secs(self.lease_seconds());
        lease.saturating_sub(lease.saturating_sub(self.renew_deadline) / 2)
    }

    /// Time before the next try to become the leader, with random jitter so that candidates do not try at the same time.
    pub(super) fn candidate_pause(&self, jitter: f64) -> Duration {
        let share = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
        self.pause().mul_f64(1.0 + JITTER_FACTOR * share)
    }

    /// Time between two renewals, with a lower bound that protects the server.
    pub(super) fn pause(&self) -> Duration {
        self.retry_period.clamp(Duration::from_millis(10), Duration::from_hours(1))
    }
}
