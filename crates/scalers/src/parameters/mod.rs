//! What a scaler accepts: typed, documented, read all at once (docs/spec/keda.md 7.1).
//!
//! ```text
//! declare   `parameters!`: from one declaration the struct, its reference page and its reader
//! value     how a text becomes a number, a list, a duration
//! reader    finds texts in their places, and collects what is wrong with them
//! known     keys that nobody knows, and those that will go
//! groups    parameters that many scalers share
//! ```
//!
//! ```
//! scalers::parameters! {
//!     /// What a shop wants to know.
//!     pub struct Parameters of "error parsing shop metadata" {
//!         /// Where the shop is.
//!         address: String = "address" | "host" in [Metadata, Authentication], required;
//!         /// How many customers one replica serves.
//!         customers: i64 = "customers" in [Metadata], default "5";
//!         /// Who may enter.
//!         mode: Option<String> = "mode" in [Metadata], one_of ["all", "some"];
//!         /// How to enter.
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
//! # Ok::<(), scalers::Error>(())
//! ```

mod declare;
pub mod groups;
mod known;
mod reader;
#[cfg(test)]
mod tests;
mod value;

pub use known::{Notice, Unknown, notices, unknown};
pub use reader::{Group, Reader};
pub use sources::http::Secret;
pub use value::{Pairs, QueryValues, Ranges, Removed, Value};

#[doc(hidden)]
pub use declare::{flat, plain};

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

impl Place {
    /// How KEDA calls it in messages.
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
    /// Of these a list may have only one.
    pub only_one_of: &'static [&'static str],
    /// What stands between the items of a list.
    pub separator: char,
    /// Why it must not be there any more.
    pub removed: Option<&'static str>,
    /// Why it should not be there any more.
    pub deprecated: Option<&'static str>,
}

impl Parameter {
    /// All keys, as messages name them: `authModes,authMode`.
    pub fn name(&self) -> String {
        self.keys.join(",")
    }
}
