//! Health checks of the metrics server, for `/readyz` and `/livez`.

use std::fmt;
use std::sync::Arc;

use runtime::CheckFailure;

/// A health check.
#[derive(Clone)]
pub struct HealthCheck {
    /// Its name in `/readyz?verbose`.
    pub name: &'static str,
    /// The endpoints it belongs to.
    pub scope: CheckScope,
    probe: Arc<dyn Fn() -> Result<(), CheckFailure> + Send + Sync>,
}

/// The endpoints that a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckScope {
    /// `/healthz`, `/livez` and `/readyz`.
    All,
    /// `/readyz`.
    Ready,
    /// `/livez`.
    Live,
}

impl HealthCheck {
    fn new(
        name: &'static str,
        scope: CheckScope,
        probe: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
    ) -> Self {
        Self { name, scope, probe: Arc::new(probe) }
    }

    pub(super) fn all(
        name: &'static str,
        probe: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, CheckScope::All, probe)
    }

    pub(super) fn ready(
        name: &'static str,
        probe: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, CheckScope::Ready, probe)
    }

    pub(super) fn live(
        name: &'static str,
        probe: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, CheckScope::Live, probe)
    }

    /// Runs the check.
    pub fn run(&self) -> Result<(), CheckFailure> {
        (self.probe)()
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.name, self.scope)
    }
}
