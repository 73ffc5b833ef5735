//! What a scaler accepts: typed, documented, read all at once (spec 7.1).

/// Where a parameter may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `metadata[key]` of the trigger.
    Metadata,
    /// The variable that `metadata["{key}FromEnv"]` names.
    Environment,
    /// A parameter of the TriggerAuthentication.
    Authentication,
}

/// One parameter, as the reference page shows it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its keys; the first is its name.
    pub keys: &'static [&'static str],
    /// What it is, from the doc comment.
    pub about: &'static str,
    /// What it looks like: `number`, `duration`, `list` and so on.
    pub kind: &'static str,
    /// Where it may stand; the first place that has it wins.
    pub places: &'static [Place],
    /// What it is if nobody says; `None` if there is no default.
    pub default: Option<&'static str>,
    /// Whether it must be there.
    pub required: bool,
    /// All that it may be; empty if anything.
    pub one_of: &'static [&'static str],
    /// Why it must not be there any more.
    pub removed: Option<&'static str>,
}
