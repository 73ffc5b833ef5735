//! Secrets of the secret managers of clouds (docs/spec/keda.md 1.3, step 8).
//!
//! An identity of the operator is used under the rules of `identity::check_use`, and `scalers::secret_managers` sends it to hosts of
//! the vendor only.

use std::collections::BTreeMap;

use api::keda::{
    AwsSecretManager, AzureKeyVault, GcpSecretManager, PodIdentity, TriggerAuthenticationSpec,
    ValueFromSecret,
};
use scalers::ScalerError;
use scalers::identity::{AwsIdentity, AwsKeys, GoogleIdentity};
use scalers::secret_managers::value_of_key;
use sources::http::Secret;

use super::steps::{AuthParameters, AuthSource};
use super::{AuthFailure, SourceRef, identity};

const AZURE: &str = "azureKeyVault";
const GOOGLE: &str = "gcpSecretManager";
const AWS: &str = "awsSecretManager";

impl AuthSource<'_> {
    /// Adds the parameters from secret managers of clouds, in KEDA's order.
    pub(super) async fn cloud_secrets(
        &self,
        spec: &TriggerAuthenticationSpec,
        out: &mut AuthParameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), AuthFailure> {
        if let Some(vault) = &spec.azure_key_vault {
            self.check_provider(AZURE, vault.pod_identity.as_ref(), "azure-workload")?;
            self.azure(vault, out, seen).await.map_err(|error| self.named(error))?;
        }
        if let Some(manager) = &spec.gcp_secret_manager {
            self.check_provider(GOOGLE, manager.pod_identity.as_ref(), "gcp")?;
            self.google(manager, out, seen).await?;
        }
        if let Some(manager) = &spec.aws_secret_manager {
            self.check_provider(AWS, manager.pod_identity.as_ref(), "aws")?;
            self.aws(manager, out, seen).await?;
        }
        Ok(())
    }

    /// Whether the object may use the pod identity of a secret manager, which is one of its cloud.
    fn check_provider(
        &self,
        manager: &'static str,
        given: Option<&PodIdentity>,
        cloud: &'static str,
    ) -> Result<(), AuthFailure> {
        let Some(given) = given.filter(|given| is_used(given)) else { return Ok(()) };
        if given.provider != cloud {
            let provider = given.provider.clone();
            return Err(self.named(AuthFailure::SecretManagerIdentity { manager, provider, cloud }));
        }
        identity::check_use(given, self.is_of_cluster(), self.auth.rules.identity.users)
            .map_err(|error| self.named(error))
    }

    async fn azure(
        &self,
        vault: &AzureKeyVault,
        out: &mut AuthParameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), AuthFailure> {
        let is_own = vault.pod_identity.as_ref().is_some_and(is_used);
        let client_secret = match &vault.credentials {
            Some(credentials) if !is_own => self.credential(&credentials.client_secret, seen).await?,
            _ => Secret::default(),
        };
        let client = self.auth.managers.key_vault(vault, &client_secret);
        let client = client.map_err(|source| failed(AZURE, &vault.vault_uri, source))?;
        for secret in &vault.secrets {
            let value = client.read(secret).await.map_err(|source| failed(AZURE, &secret.name, source))?;
            out.insert(secret.parameter.clone(), self.counted(value.reveal().to_owned())?);
        }
        Ok(())
    }

    async fn google(
        &self,
        manager: &GcpSecretManager,
        out: &mut AuthParameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), AuthFailure> {
        let identity = match (&manager.pod_identity, &manager.credentials) {
            (Some(given), _) if is_used(given) => GoogleIdentity::Operator,
            (_, Some(credentials)) => {
                GoogleIdentity::Key(self.credential(&credentials.client_secret, seen).await?)
            }
            _ => return self.omitted(AuthFailure::NoSecretManagerCredentials { manager: GOOGLE }),
        };
        let client = self.auth.managers.google(identity);
        for secret in &manager.secrets {
            let value = client.read(secret).await.map_err(|source| failed(GOOGLE, &secret.id, source));
            self.add(&secret.parameter, value, out)?;
        }
        Ok(())
    }

    async fn aws(
        &self,
        manager: &AwsSecretManager,
        out: &mut AuthParameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), AuthFailure> {
        let identity = match self.aws_identity(manager, seen).await {
            Ok(identity) => identity,
            Err(error) => return self.omitted(error),
        };
        let client = match self.auth.managers.aws(identity, &manager.region) {
            Ok(client) => client,
            Err(source) => return self.omitted(failed(AWS, &manager.region, source)),
        };
        // Several parameters are often keys of one secret.
        let mut read: BTreeMap<[&str; 3], Result<Secret, ScalerError>> = BTreeMap::new();
        for secret in &manager.secrets {
            let version = [&*secret.name, &*secret.version_id, &*secret.version_stage];
            let text = match read.get(&version) {
                Some(known) => known.clone(),
                None => {
                    let text = client.read(secret).await;
                    read.insert(version, text.clone());
                    text
                }
            };
            let value = text.and_then(|text| value_of_key(&text, &secret.secret_key));
            self.add(&secret.parameter, value.map_err(|source| failed(AWS, &secret.name, source)), out)?;
        }
        Ok(())
    }

    async fn aws_identity(
        &self,
        manager: &AwsSecretManager,
        seen: &mut Vec<SourceRef>,
    ) -> Result<AwsIdentity, AuthFailure> {
        if let Some(given) = manager.pod_identity.as_ref().filter(|given| is_used(given)) {
            return identity::of_aws(self.auth, self.query, given, seen).await;
        }
        let missing = AuthFailure::NoSecretManagerCredentials { manager: AWS };
        let Some(credentials) = &manager.credentials else { return Err(missing) };
        let access = self.credential(&credentials.access_key, seen).await?;
        let secret = self.credential(&credentials.access_secret_key, seen).await?;
        if access.reveal().is_empty() || secret.reveal().is_empty() {
            return Err(missing);
        }
        let session = match &credentials.access_token {
            Some(token) => {
                Some(self.credential(token, seen).await?).filter(|token| !token.reveal().is_empty())
            }
            None => None,
        };
        Ok(AwsIdentity::Keys(AwsKeys { access: access.reveal().to_owned(), secret, session }))
    }

    async fn credential(
        &self,
        value: &ValueFromSecret,
        seen: &mut Vec<SourceRef>,
    ) -> Result<Secret, AuthFailure> {
        let key = &value.value_from.secret_key_ref;
        self.secret_value(&key.name, &key.key, seen).await.map(Secret::new)
    }

    /// Adds a parameter.
    fn add(
        &self,
        parameter: &str,
        value: Result<Secret, AuthFailure>,
        out: &mut AuthParameters,
    ) -> Result<(), AuthFailure> {
        match value {
            Ok(value) => {
                out.insert(parameter.to_owned(), self.counted(value.reveal().to_owned())?);
                Ok(())
            }
            Err(error) => self.omitted(error),
        }
    }

    /// KEDA logs errors of two of the managers and goes on without the parameters.
    fn omitted(&self, error: AuthFailure) -> Result<(), AuthFailure> {
        if !self.auth.rules.compat.is_strict() {
            return Err(self.named(error));
        }
        tracing::warn!(%error, "a secret of a secret manager was not read, and its parameter is left out");
        Ok(())
    }
}

/// Whether a pod identity is one.
fn is_used(identity: &PodIdentity) -> bool {
    !matches!(identity.provider.as_str(), "" | "none")
}

fn failed(manager: &'static str, secret: &str, source: ScalerError) -> AuthFailure {
    AuthFailure::SecretManager { manager, secret: secret.to_owned(), source }
}
