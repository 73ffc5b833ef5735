//! Parameters of a cloud identity (docs/spec/keda.md 1.3, step 11).

use std::collections::BTreeMap;

use api::keda::PodIdentity;
use keda::environment::PodTemplate;

use super::{AuthFailure, AuthQuery, AuthResolver, SourceKind, SourceRef, note};
use crate::operator::operator_identity::IdentityUsers;

/// The annotation with the IAM role of a ServiceAccount on EKS.
const ROLE_ANNOTATION: &str = "eks.amazonaws.com/role-arn";
/// The parameter from which scalers read the role.
const ROLE_PARAMETER: &str = "awsRoleArn";

/// Whether an object may use a cloud identity of the operator. An object that a tenant writes never chooses where the operator
/// proves who it is.
pub(super) fn check_use(
    identity: &PodIdentity,
    is_of_cluster: bool,
    users: IdentityUsers,
) -> Result<(), AuthFailure> {
    let is_used = !matches!(identity.provider.as_str(), "" | "none");
    if is_of_cluster || !is_used {
        return Ok(());
    }
    if users == IdentityUsers::ClusterOnly {
        return Err(AuthFailure::ClusterOnlyIdentity(identity.provider.clone()));
    }
    if identity.identity_authority_host.as_deref().is_some_and(|host| !host.is_empty()) {
        return Err(AuthFailure::AuthorityHost);
    }
    Ok(())
}

/// Adds the role of the identity to the parameters. A target without pods has none.
pub(super) async fn complete(
    auth: &AuthResolver,
    query: AuthQuery<'_>,
    identity: &PodIdentity,
    parameters: &mut BTreeMap<String, String>,
    seen: &mut Vec<SourceRef>,
) -> Result<(), AuthFailure> {
    let Some(template) = query.template else { return Ok(()) };
    let owned_by_workload = identity.identity_owner.as_deref() == Some("workload");
    match identity.provider.as_str() {
        "aws" => {
            let role = identity.role_arn.as_deref().filter(|role| !role.is_empty());
            if role.is_some() && owned_by_workload {
                return Err(AuthFailure::RoleOfWorkload);
            }
            if let Some(role) = role {
                parameters.insert(ROLE_PARAMETER.to_owned(), role.to_owned());
            } else if owned_by_workload {
                let account = account(template);
                let role = role_of(auth, query.namespace, account, seen).await?;
                let missing = || AuthFailure::NoRole {
                    namespace: query.namespace.to_owned(),
                    account: account.to_owned(),
                    annotation: ROLE_ANNOTATION,
                };
                parameters.insert(ROLE_PARAMETER.to_owned(), role.ok_or_else(missing)?);
            }
        }
        "aws-eks" => {
            let role = role_of(auth, query.namespace, account(template), seen).await;
            // Both the annotation and the account are optional here.
            if let Ok(Some(role)) = role {
                parameters.insert(ROLE_PARAMETER.to_owned(), role);
            }
        }
        "azure-workload" if identity.identity_id.as_deref() == Some("") => {
            return Err(AuthFailure::EmptyIdentityId);
        }
        _ => {}
    }
    Ok(())
}

fn account(template: &PodTemplate) -> &str {
    match template.service_account_name.as_str() {
        "" => "default",
        name => name,
    }
}

async fn role_of(
    auth: &AuthResolver,
    namespace: &str,
    account: &str,
    seen: &mut Vec<SourceRef>,
) -> Result<Option<String>, AuthFailure> {
    let object = SourceRef {
        kind: SourceKind::ServiceAccount,
        namespace: namespace.to_owned(),
        name: account.to_owned(),
    };
    note(seen, object);
    let annotations =
        auth.objects.service_account(namespace, account).await.map_err(AuthFailure::ServiceAccount)?;
    Ok(annotations.get(ROLE_ANNOTATION).filter(|role| !role.is_empty()).cloned())
}
