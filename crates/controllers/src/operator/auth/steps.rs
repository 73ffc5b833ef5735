//! The sources of parameters, in order; later ones overwrite earlier ones (docs/spec/keda.md 1.3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use api::keda::{
    AuthEnvironment, AzureServicePrincipal, KeyTarget, OAuth2, PodIdentity, TriggerAuthentication,
    TriggerAuthenticationSpec,
};
use keda::environment::EnvironmentError;

use super::object_cache::ObjectCache;
use super::{AuthFailure, AuthQuery, AuthResolver, FetchError, SourceKind, SourceRef, files, identity, note};
use crate::operator::operator_identity::IdentityUsers;
use crate::operator::operator_identity::audiences::{TokenMode, check_claims};

/// Entries of each list of a TriggerAuthentication: an entry may cost one request.
const MAX_LIST_ENTRIES: usize = 1000;
/// Total size of the values of a TriggerAuthentication, in bytes: many entries may name the same large value.
const MAX_VALUE_BYTES: usize = 8 << 20;

/// Parameters of a trigger from its authentication, by name.
pub(super) type AuthParameters = BTreeMap<String, String>;

/// Parameters and identity of a trigger. `seen` collects the objects that were read.
pub(super) async fn resolve(
    auth: &AuthResolver,
    query: AuthQuery<'_>,
    seen: &mut Vec<SourceRef>,
) -> Result<(AuthParameters, PodIdentity), AuthFailure> {
    let none = || PodIdentity { provider: "none".to_owned(), ..PodIdentity::default() };
    let Some((object, found)) = load(auth, query, seen).await? else {
        return Ok((AuthParameters::new(), none()));
    };
    let identity = found.spec.pod_identity.clone().unwrap_or_else(none);
    let source = AuthSource {
        auth,
        query,
        lookup: lookup_namespace(auth, query, &object),
        object,
        objects: ObjectCache::new(&*auth.objects),
        value_bytes: AtomicUsize::new(0),
    };
    identity::check_use(&identity, source.is_of_cluster(), auth.rules.identity.users)
        .map_err(|error| source.named(error))?;
    let mut parameters = source.parameters(&found.spec, seen).await?;
    identity::complete(auth, query, &identity, &mut parameters, seen).await?;
    Ok((parameters, identity))
}

/// The referenced object; none if there is no reference, or if KEDA would ignore its absence.
async fn load(
    auth: &AuthResolver,
    query: AuthQuery<'_>,
    seen: &mut Vec<SourceRef>,
) -> Result<Option<(SourceRef, TriggerAuthentication)>, AuthFailure> {
    let Some(reference) = query.authentication else { return Ok(None) };
    let (kind, namespace) = match reference.kind.as_str() {
        "" | "TriggerAuthentication" => (SourceKind::TriggerAuthentication, Some(query.namespace)),
        "ClusterTriggerAuthentication" => (SourceKind::ClusterTriggerAuthentication, None),
        _ if auth.rules.compat.is_strict() => return Ok(None),
        other => {
            let (name, kind) = (reference.name.clone(), other.to_owned());
            return Err(AuthFailure::UnknownKind { name, kind });
        }
    };
    let name = reference.name.clone();
    let object = SourceRef { kind, namespace: namespace.unwrap_or_default().to_owned(), name };
    note(seen, object.clone());
    match auth.objects.authentication(namespace, &reference.name).await {
        Ok(found) => Ok(Some((object, found))),
        Err(_) if auth.rules.compat.is_strict() => Ok(None),
        Err(error) => Err(unread(&object, error)),
    }
}

/// The namespace of Secrets, ConfigMaps and ServiceAccounts.
fn lookup_namespace(auth: &AuthResolver, query: AuthQuery<'_>, object: &SourceRef) -> String {
    match object.kind {
        SourceKind::ClusterTriggerAuthentication => auth.rules.cluster_namespace.clone(),
        _ => query.namespace.to_owned(),
    }
}

/// One TriggerAuthentication for one trigger.
pub(super) struct AuthSource<'a> {
    pub(super) auth: &'a AuthResolver,
    pub(super) query: AuthQuery<'a>,
    /// The namespace of the objects that are read.
    lookup: String,
    /// The TriggerAuthentication.
    object: SourceRef,
    /// The Secrets and ConfigMaps that were read.
    objects: ObjectCache<'a>,
    /// Total size of the values so far, in bytes.
    value_bytes: AtomicUsize,
}

impl AuthSource<'_> {
    /// Whether an administrator wrote it.
    pub(super) fn is_of_cluster(&self) -> bool {
        self.object.kind == SourceKind::ClusterTriggerAuthentication
    }

    /// Whether it may use credentials of the operator.
    pub(super) fn may_use_operator_identity(&self) -> bool {
        self.is_of_cluster() || self.auth.rules.identity.users == IdentityUsers::Any
    }

    async fn parameters(
        &self,
        spec: &TriggerAuthenticationSpec,
        seen: &mut Vec<SourceRef>,
    ) -> Result<AuthParameters, AuthFailure> {
        self.check_lists(spec)?;
        let mut out = AuthParameters::new();
        self.variables(spec, &mut out, seen).await?;
        if !spec.file_path.is_empty() {
            return self.file(&spec.file_path).await;
        }
        for target in &spec.config_map_target_ref {
            let value = self.config_map_value(target, seen).await?;
            out.insert(target.parameter.clone(), value);
        }
        for target in &spec.secret_target_ref {
            let value = self.secret_value(&target.name, &target.key, seen).await?;
            out.insert(target.parameter.clone(), value);
        }
        if let Some(vault) = &spec.hashi_corp_vault {
            let secrets = self.auth.vaults.read(self, vault, seen).await;
            out.extend(secrets.map_err(|error| self.named(error))?);
        }
        if spec.azure_key_vault.is_some()
            || spec.gcp_secret_manager.is_some()
            || spec.aws_secret_manager.is_some()
        {
            // In a box, because it is larger than the rest of the future and seldom needed.
            Box::pin(self.cloud_secrets(spec, &mut out, seen)).await?;
        }
        for bound in &spec.bound_service_account_token {
            let token = match bound.service_account_name.as_str() {
                "" => Err(AuthFailure::NoAccountName),
                name => self.token(&self.lookup, name, seen).await,
            };
            let is_required = self.auth.rules.profile.behavior().operator.bound_tokens_are_required;
            let value = match token {
                Err(error) if is_required => return Err(self.named(error)),
                token => self.lenient(token)?,
            };
            out.insert(bound.parameter.clone(), value);
        }
        if let Some(oauth2) = &spec.oauth2 {
            self.oauth2(oauth2, &mut out, seen).await?;
        }
        if let Some(principal) = &spec.azure_service_principal {
            self.service_principal(principal, &mut out, seen).await?;
        }
        Ok(out)
    }

    /// KEDA takes a failed value as empty; otherwise the error names the TriggerAuthentication.
    pub(super) fn lenient(&self, value: Result<String, AuthFailure>) -> Result<String, AuthFailure> {
        match value {
            Ok(value) => self.counted(value),
            Err(_) if self.auth.rules.compat.is_strict() => Ok(String::new()),
            Err(error) => Err(self.named(error)),
        }
    }

    /// A value of a parameter, unless all of them are too large together.
    pub(super) fn counted(&self, value: String) -> Result<String, AuthFailure> {
        let before = self.value_bytes.fetch_add(value.len(), Ordering::Relaxed);
        if before + value.len() > MAX_VALUE_BYTES {
            return Err(self.named(AuthFailure::TooLarge(MAX_VALUE_BYTES)));
        }
        Ok(value)
    }

    fn check_lists(&self, spec: &TriggerAuthenticationSpec) -> Result<(), AuthFailure> {
        let lists = [
            ("env", spec.env.len()),
            ("configMapTargetRef", spec.config_map_target_ref.len()),
            ("secretTargetRef", spec.secret_target_ref.len()),
            ("hashiCorpVault.secrets", spec.hashi_corp_vault.as_ref().map_or(0, |own| own.secrets.len())),
            ("azureKeyVault.secrets", spec.azure_key_vault.as_ref().map_or(0, |own| own.secrets.len())),
            ("gcpSecretManager.secrets", spec.gcp_secret_manager.as_ref().map_or(0, |own| own.secrets.len())),
            ("awsSecretManager.secrets", spec.aws_secret_manager.as_ref().map_or(0, |own| own.secrets.len())),
            ("boundServiceAccountToken", spec.bound_service_account_token.len()),
        ];
        match lists.into_iter().find(|(_, count)| *count > MAX_LIST_ENTRIES) {
            Some((list, count)) => {
                Err(self.named(AuthFailure::TooManyEntries { list, count, limit: MAX_LIST_ENTRIES }))
            }
            None => Ok(()),
        }
    }

    /// The error, with the name of the TriggerAuthentication.
    pub(super) fn named(&self, error: AuthFailure) -> AuthFailure {
        match error {
            named @ AuthFailure::Of { .. } => named,
            error => AuthFailure::Of { object: self.object.clone(), source: Box::new(error) },
        }
    }

    /// Environment variables of the workload.
    async fn variables(
        &self,
        spec: &TriggerAuthenticationSpec,
        out: &mut AuthParameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), AuthFailure> {
        let mut by_container: BTreeMap<&str, Result<BTreeMap<String, String>, EnvironmentError>> =
            BTreeMap::new();
        for wanted in &spec.env {
            let container = self.container_of(wanted);
            let found = match by_container.remove(container) {
                Some(found) => found,
                None => self.named_variables(spec, container, seen).await,
            };
            let value = match &found {
                Ok(variables) => Ok(variables.get(&wanted.name).cloned().unwrap_or_default()),
                Err(error) => Err(AuthFailure::Environment(error.clone())),
            };
            by_container.insert(container, found);
            out.insert(wanted.parameter.clone(), self.lenient(value)?);
        }
        Ok(())
    }

    /// The container whose variable an entry names.
    fn container_of<'b>(&'b self, wanted: &'b AuthEnvironment) -> &'b str {
        match wanted.container_name.as_str() {
            // KEDA takes the first container, although its documentation names `envSourceContainerName`.
            "" if !self.auth.rules.compat.is_strict() => self.query.container,
            name => name,
        }
    }

    /// The variables of a container that entries name; the others may be large.
    async fn named_variables(
        &self,
        spec: &TriggerAuthenticationSpec,
        container: &str,
        seen: &mut Vec<SourceRef>,
    ) -> Result<BTreeMap<String, String>, EnvironmentError> {
        let AuthQuery { namespace, template, .. } = self.query;
        let mut variables = self.auth.variables(&self.objects, namespace, template, container, seen).await?;
        let of_container = spec.env.iter().filter(|wanted| self.container_of(wanted) == container);
        let names: BTreeSet<&str> = of_container.map(|wanted| wanted.name.as_str()).collect();
        variables.retain(|name, _| names.contains(name.as_str()));
        Ok(variables)
    }

    /// The content of a file, which replaces all other parameters.
    async fn file(&self, file: &str) -> Result<AuthParameters, AuthFailure> {
        if !self.is_of_cluster() {
            let kind = self.query.authentication.map(|own| own.kind.as_str()).unwrap_or_default();
            return Err(AuthFailure::FilePathKind(kind.to_owned()));
        }
        Ok(files::parameters(self.auth.rules.file_root.as_deref(), file).await?)
    }

    async fn config_map_value(
        &self,
        target: &KeyTarget,
        seen: &mut Vec<SourceRef>,
    ) -> Result<String, AuthFailure> {
        let object = self.noted(SourceKind::ConfigMap, &target.name, seen);
        let value = match self.objects.config_map(&self.lookup, &target.name).await {
            Ok(data) => data.get(&target.key).cloned().ok_or_else(|| no_key(&object, &target.key)),
            Err(error) => Err(unread(&object, error)),
        };
        self.lenient(value)
    }

    pub(super) async fn secret_value(
        &self,
        name: &str,
        key: &str,
        seen: &mut Vec<SourceRef>,
    ) -> Result<String, AuthFailure> {
        let object = self.noted(SourceKind::Secret, name, seen);
        if let Err(restricted) = self.auth.rules.secrets.check(&self.lookup, name) {
            return self.lenient(Err(restricted.into()));
        }
        let value = match self.objects.secret(&self.lookup, name).await {
            Ok(data) => data.get(key).ok_or_else(|| no_key(&object, key)).and_then(|value| {
                let (object, key) = (object.clone(), key.to_owned());
                String::from_utf8(value.clone()).map_err(|_| AuthFailure::NotText { object, key })
            }),
            Err(error) => Err(unread(&object, error)),
        };
        self.lenient(value)
    }

    fn noted(&self, kind: SourceKind, name: &str, seen: &mut Vec<SourceRef>) -> SourceRef {
        let object = SourceRef { kind, namespace: self.lookup.clone(), name: name.to_owned() };
        note(seen, object.clone());
        object
    }

    /// A new token of a service account, with the audience that an administrator approved for it.
    pub(super) async fn token(
        &self,
        namespace: &str,
        account: &str,
        seen: &mut Vec<SourceRef>,
    ) -> Result<String, AuthFailure> {
        let name = account.to_owned();
        let object = SourceRef { kind: SourceKind::ServiceAccount, namespace: namespace.to_owned(), name };
        note(seen, object.clone());
        let named = || format!("{namespace}/{account}");
        let rules = &self.auth.rules.identity;
        let audience = match rules.token_mode {
            TokenMode::EnforceAudience => {
                let approved = rules.audiences.requested(namespace, account);
                Some(approved.ok_or_else(|| AuthFailure::NoAudience(named()))?)
            }
            TokenMode::Legacy => {
                tracing::warn!(account = named(), "a token is requested without an audience (legacy mode)");
                None
            }
        };
        let expiry = self.auth.rules.token_expiry;
        let token = self.auth.objects.token(namespace, account, audience, expiry).await;
        let token = token.map_err(|source| {
            if source.is_not_found() {
                AuthFailure::Missing(object)
            } else {
                AuthFailure::NoToken { account: named(), source: Box::new(source) }
            }
        })?;
        if token.is_empty() {
            return Err(AuthFailure::EmptyToken(named()));
        }
        if let Some(audience) = audience {
            check_claims(&token, |own| own == audience, self.auth.clock.now())
                .map_err(|source| AuthFailure::InvalidToken { account: named(), source })?;
        }
        Ok(token)
    }

    async fn oauth2(
        &self,
        oauth2: &OAuth2,
        out: &mut AuthParameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), AuthFailure> {
        let mut set = |name: &str, value: String| out.insert(name.to_owned(), value);
        set("oauthTokenURI", oauth2.token_url.clone());
        set("clientID", oauth2.client_id.clone());
        set("scopes", oauth2.scopes.join(","));
        let pairs = oauth2.token_url_params.iter().map(|(name, value)| (encoded(name), encoded(value)));
        set(
            "endpointParams",
            pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"),
        );
        if let Some(secret) = &oauth2.client_secret {
            let key = &secret.value_from.secret_key_ref;
            let value = self.secret_value(&key.name, &key.key, seen).await?;
            out.insert("clientSecret".to_owned(), value);
        }
        Ok(())
    }

    /// The parameters that KEDA 2.21 makes of a service principal; absent fields set none.
    async fn service_principal(
        &self,
        principal: &AzureServicePrincipal,
        out: &mut AuthParameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), AuthFailure> {
        let name = |field: &str| format!("azureServicePrincipal{field}");
        out.insert(name(""), "true".to_owned());
        out.insert(name("TenantId"), principal.tenant_id.clone());
        out.insert(name("ClientId"), principal.client_id.clone());
        let optional =
            [("Cloud", &principal.cloud), ("ActiveDirectoryEndpoint", &principal.active_directory_endpoint)];
        let given = optional.into_iter().filter(|(_, value)| !value.is_empty());
        out.extend(given.map(|(field, value)| (name(field), value.clone())));
        let secrets = [
            ("ClientSecret", &principal.client_secret),
            ("ClientCertificate", &principal.client_certificate),
            ("ClientCertificatePassword", &principal.client_certificate_password),
        ];
        for (field, secret) in secrets {
            if let Some(secret) = secret {
                let key = &secret.value_from.secret_key_ref;
                let value = self.secret_value(&key.name, &key.key, seen).await?;
                out.insert(name(field), value);
            }
        }
        Ok(())
    }
}

fn no_key(object: &SourceRef, key: &str) -> AuthFailure {
    AuthFailure::NoKey { object: object.clone(), key: key.to_owned() }
}

fn unread(object: &SourceRef, source: FetchError) -> AuthFailure {
    let object = object.clone();
    if source.is_not_found() {
        AuthFailure::Missing(object)
    } else {
        AuthFailure::Unread { object, source: Box::new(source) }
    }
}

/// Escapes a text for the query of a URL.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
