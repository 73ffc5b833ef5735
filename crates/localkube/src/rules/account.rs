//! Service accounts.

use super::json::tidy;
use super::{NONE, Rules};

/// The rules of service accounts.
pub const RULES: Rules = Rules { default: |account, _| tidy(account), ..NONE };
