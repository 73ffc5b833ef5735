//! Rules for credentials of the operator, from flags and variables, with the errors of KEDA 2.21.

use std::path::PathBuf;

use controllers::operator::operator_identity::audiences::{
    self, TokenAudiences, TokenAudiencesError, TokenMode,
};
use controllers::operator::operator_identity::outbound::{self, OutboundFilter};
use controllers::operator::operator_identity::{IdentityRules, IdentityUsers};

use super::flags::OperatorFlags;
use crate::failure::Failure;

/// Which objects may use credentials of the operator, and for which destinations.
pub(super) fn identity(
    flags: &OperatorFlags,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<IdentityRules, Failure> {
    let given = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
    let outbound = match given(outbound::VARIABLE) {
        Some(text) => OutboundFilter::parse(&text).map_err(Failure::input)?,
        None => OutboundFilter::default(),
    };
    let token_mode = TokenMode::parse(flags.text("service-account-token-mode")?).map_err(Failure::input)?;
    let audiences = match given(audiences::VARIABLE) {
        Some(text) => TokenAudiences::parse(&text).map_err(Failure::input)?,
        None => TokenAudiences::default(),
    };
    if token_mode == TokenMode::Legacy && !audiences.is_empty() {
        return Err(Failure::input(TokenAudiencesError::Legacy));
    }
    Ok(IdentityRules {
        outbound,
        token_mode,
        audiences,
        users: IdentityUsers::parse(flags.text("operator-identity")?).unwrap_or_default(),
        vault_token_file: PathBuf::from(flags.text("vault-kubernetes-auth-token-file")?),
        ..IdentityRules::default()
    })
}
