//! What must hold for the server to be well, for whoever answers `/readyz` and `/livez`.

use std::fmt;
use std::sync::Arc;

/// Something that must hold.
#[derive(Clone)]
pub struct HealthCheck {
    /// Its name in `/readyz?verbose`.
    pub name: &'static str,
    /// For which questions it counts.
    pub scope: CheckScope,
    look: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// For which questions a check counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckScope {
    /// All.
    All,
    /// Whether requests should come here.
    Ready,
    /// Whether the program should be restarted.
    Live,
}

impl HealthCheck {
    fn new(
        name: &'static str,
        scope: CheckScope,
        look: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { name, scope, look: Arc::new(look) }
    }

    pub(super) fn all(
        name: &'static str,
        look: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, CheckScope::All, look)
    }

    pub(super) fn ready(
        name: &'static str,
        look: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, CheckScope::Ready, look)
    }

    pub(super) fn live(
        name: &'static str,
        look: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, CheckScope::Live, look)
    }

    /// Whether it holds, or why not.
    pub fn look(&self) -> Result<(), String> {
        (self.look)()
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.name, self.scope)
    }
}
