//! Parameters of a cloud identity (docs/spec/keda.md 1.3, step 11).

use std::collections::BTreeMap;

use api::keda::PodIdentity;
use keda::environment::PodTemplate;
use scalers::identity::AwsIdentity;

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
    match identity.provider.as_str() {
        "aws" => {
            let role = aws_role(auth, query, identity, seen).await?;
            parameters.extend(role.map(|role| (ROLE_PARAMETER.to_owned(), role)));
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

/// The AWS identity that a pod identity `aws` stands for: a role, or that of the operator.
pub(super) async fn of_aws(
    auth: &AuthResolver,
    query: AuthQuery<'_>,
    identity: &PodIdentity,
    seen: &mut Vec<SourceRef>,
) -> Result<AwsIdentity, AuthFailure> {
    let external_id = identity.external_id.clone().filter(|id| !id.is_empty());
    Ok(match aws_role(auth, query, identity, seen).await? {
        Some(arn) => AwsIdentity::Role { arn, external_id, web_identity: true },
        None => AwsIdentity::Operator,
    })
}

/// The role of a pod identity `aws`: its own, or that of the workload's ServiceAccount.
async fn aws_role(
    auth: &AuthResolver,
    query: AuthQuery<'_>,
    identity: &PodIdentity,
    seen: &mut Vec<SourceRef>,
) -> Result<Option<String>, AuthFailure> {
    let role = identity.role_arn.clone().filter(|role| !role.is_empty());
    if identity.identity_owner.as_deref() != Some("workload") {
        return Ok(role);
    }
    if role.is_some() {
        return Err(AuthFailure::RoleOfWorkload);
    }
    let account = account(query.template.ok_or(AuthFailure::NoWorkload)?);
    let role = role_of(auth, query.namespace, account, seen).await?;
    let missing = || AuthFailure::NoRole {
        namespace: query.namespace.to_owned(),
        account: account.to_owned(),
        annotation: ROLE_ANNOTATION,
    };
    role.ok_or_else(missing).map(Some)
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
