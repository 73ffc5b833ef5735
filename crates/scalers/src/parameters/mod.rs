//! Typed and documented parameters of scalers (docs/spec/keda.md 7.1).
//!
//! ```text
//! declare   `parameters!`: generates a struct, its reader and its documentation
//! value     parsing of values
//! reader    reads parameters from their sources and collects errors
//! notices   unknown, deprecated and insecure parameters
//! groups    parameters that many scalers share
//! ```
//!
//! ```
//! scalers::parameters! {
//!     /// Parameters of the shop scaler.
//!     pub struct Parameters of "error parsing shop metadata" {
//!         /// Address of the shop.
//!         address: String = "address" | "host" in [Metadata, Authentication], required;
//!         /// Target number of customers per replica.
//!         customers: i64 = "customers" in [Metadata], default "5";
//!         /// Which customers count.
//!         mode: Option<String> = "mode" in [Metadata], one_of ["all", "some"];
//!         /// Password of the shop.
//!         password: scalers::parameters::Secret = "password" in [Authentication, Environment];
//!     }
//! }
//!
//! let mut trigger = scalers::Trigger::default();
//! trigger.metadata.insert("host".into(), "shop.example".into());
//! let read = Parameters::read(&trigger)?;
//! assert_eq!((&*read.address, read.customers, read.mode), ("shop.example", 5, None));
//! trigger.metadata.clear();
//! assert_eq!(
//!     Parameters::read(&trigger).unwrap_err().to_string(),
//!     "error parsing shop metadata: missing required parameter \"address,host\" in [triggerMetadata authParams]"
//! );
//! # Ok::<(), scalers::ScalerError>(())
//! ```

mod declare;
pub mod groups;
mod notices;
mod reader;
#[cfg(test)]
mod tests;
mod value;

pub use api::keda::KedaProfile;
pub use notices::{ParameterNotice, UnknownParameter, notices, unknown};
pub use reader::{InvalidParameters, ParameterGroup, ParameterProblem, ParameterReader};
pub use sources::http::Secret;
pub use value::{NullableNumber, Pairs, ParameterValue, QueryValues, Ranges, Removed};

#[doc(hidden)]
pub use declare::{flat, plain};

/// Where a parameter is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterSource {
    /// `metadata[key]` of the trigger.
    Metadata,
    /// The variable that `metadata["{key}FromEnv"]` names.
    Environment,
    /// A parameter of the TriggerAuthentication.
    Authentication,
}

impl ParameterSource {
    /// KEDA's name of the source in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metadata => "triggerMetadata",
            Self::Environment => "resolvedEnv",
            Self::Authentication => "authParams",
        }
    }
}

/// One parameter, as the reference page shows it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its keys; the first is its name.
    pub keys: &'static [&'static str],
    /// Description, from the doc comment.
    pub about: &'static str,
    /// Type for users: `number`, `duration`, `list` and so on.
    pub kind: &'static str,
    /// Its sources; the first source that has the parameter wins.
    pub sources: &'static [ParameterSource],
    /// Default value, if there is one.
    pub default: Option<&'static str>,
    /// Whether it is required.
    pub required: bool,
    /// Allowed values; empty if all are allowed.
    pub one_of: &'static [&'static str],
    /// Values of which a list may contain only one.
    pub only_one_of: &'static [&'static str],
    /// Separator of list items.
    pub separator: char,
    /// Why it is no longer accepted.
    pub removed: Option<&'static str>,
    /// The first release of KEDA that no longer accepts it; it is valid in earlier ones.
    pub removed_in: KedaProfile,
    /// The first release of KEDA that has it; earlier ones ignore it.
    pub since: KedaProfile,
    /// Why it is deprecated.
    pub deprecated: Option<&'static str>,
    /// The first release of KEDA in which it is deprecated.
    pub deprecated_in: KedaProfile,
}

impl Parameter {
    /// All keys as in messages: `authModes,authMode`.
    pub fn name(&self) -> String {
        self.keys.join(",")
    }

    /// Why a release no longer accepts it; none if it does.
    pub fn removed_from(&self, profile: KedaProfile) -> Option<&'static str> {
        self.removed.filter(|_| profile >= self.removed_in)
    }
}
