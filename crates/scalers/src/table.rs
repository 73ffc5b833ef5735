//! All scalers.

use std::sync::Arc;

use crate::backends::Backends;
use crate::parameters::Parameter;
use crate::{Error, Scaler, Trigger};

/// One type of scaler.
pub struct Type {
    /// What stands in `type`.
    pub name: &'static str,
    /// What it measures, in one sentence.
    pub about: &'static str,
    /// How it is called in Prometheus metrics where a trigger has no name; dashboards filter on it.
    pub display: &'static str,
    /// What it accepts.
    pub parameters: &'static [Parameter],
    /// Whether it tells of activity itself.
    pub push: bool,
    /// Makes one; does not connect to anything.
    pub build: fn(&Trigger, &Backends) -> Result<Arc<dyn Scaler>, Error>,
}

/// All of them, by name.
pub const TABLE: &[Type] = &[];

/// The type of this name.
pub fn find(name: &str) -> Option<&'static Type> {
    TABLE.iter().find(|scaler| scaler.name == name)
}

/// Makes the scaler of a trigger: `no scaler found for type: X` (and what was probably meant) if there is none.
pub fn build(trigger: &Trigger, _backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    Err(Error::new(format!("no scaler found for type: {}", trigger.type_)))
}
