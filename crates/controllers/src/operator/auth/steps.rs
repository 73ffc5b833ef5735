//! The sources of parameters, in order; later ones overwrite earlier ones (docs/spec/keda.md 1.3).

use std::collections::BTreeMap;

use api::keda::{KeyTarget, OAuth2, PodIdentity, TriggerAuthentication, TriggerAuthenticationSpec};

use super::{AuthQuery, AuthResolver, SourceKind, SourceRef, files, identity, note};

type Parameters = BTreeMap<String, String>;

/// Parameters and identity of a trigger. `seen` collects the objects that were read.
pub(super) async fn resolve(
    auth: &AuthResolver,
    asked: AuthQuery<'_>,
    seen: &mut Vec<SourceRef>,
) -> Result<(Parameters, PodIdentity), String> {
    let none = || PodIdentity { provider: "none".to_owned(), ..PodIdentity::default() };
    let Some((object, found)) = load(auth, asked, seen).await? else {
        return Ok((Parameters::new(), none()));
    };
    let identity = found.spec.pod_identity.clone().unwrap_or_else(none);
    let source = AuthSource { auth, asked, lookup: lookup_namespace(auth, asked, &object), object };
    let mut parameters = source.parameters(&found.spec, seen).await?;
    identity::complete(auth, asked, &identity, &mut parameters, seen).await?;
    Ok((parameters, identity))
}

/// The referenced object; none if there is no reference, or if KEDA would ignore its absence.
async fn load(
    auth: &AuthResolver,
    asked: AuthQuery<'_>,
    seen: &mut Vec<SourceRef>,
) -> Result<Option<(SourceRef, TriggerAuthentication)>, String> {
    let Some(reference) = asked.authentication else { return Ok(None) };
    let (kind, namespace) = match reference.kind.as_str() {
        "" | "TriggerAuthentication" => (SourceKind::TriggerAuthentication, Some(asked.namespace)),
        "ClusterTriggerAuthentication" => (SourceKind::ClusterTriggerAuthentication, None),
        _ if auth.rules.compat.is_strict() => return Ok(None),
        other => {
            return Err(format!(
                "authenticationRef {:?} is of kind {other:?}; TriggerAuthentication and ClusterTriggerAuthentication \
                 are known",
                reference.name
            ));
        }
    };
    let name = reference.name.clone();
    let object = SourceRef { kind, namespace: namespace.unwrap_or_default().to_owned(), name };
    note(seen, object.clone());
    match auth.objects.authentication(namespace, &reference.name).await {
        Ok(found) => Ok(Some((object, found))),
        Err(_) if auth.rules.compat.is_strict() => Ok(None),
        Err(failure) if failure.not_found => Err(format!("{object} does not exist")),
        Err(failure) => Err(format!("failed to read {object}: {}", failure.text)),
    }
}

/// The namespace of Secrets, ConfigMaps and ServiceAccounts.
fn lookup_namespace(auth: &AuthResolver, asked: AuthQuery<'_>, object: &SourceRef) -> String {
    match object.kind {
        SourceKind::ClusterTriggerAuthentication => auth.rules.cluster_namespace.clone(),
        _ => asked.namespace.to_owned(),
    }
}

/// One TriggerAuthentication for one trigger.
pub(super) struct AuthSource<'a> {
    pub(super) auth: &'a AuthResolver,
    pub(super) asked: AuthQuery<'a>,
    /// The namespace of the objects that are read.
    lookup: String,
    /// The TriggerAuthentication.
    object: SourceRef,
}

impl AuthSource<'_> {
    async fn parameters(
        &self,
        spec: &TriggerAuthenticationSpec,
        seen: &mut Vec<SourceRef>,
    ) -> Result<Parameters, String> {
        let mut out = Parameters::new();
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
            out.extend(secrets.map_err(|error| format!("{}: {error}", self.object))?);
        }
        self.refuse_clouds(spec)?;
        for bound in &spec.bound_service_account_token {
            let value = self.lenient(self.token(&self.lookup, &bound.service_account_name, seen).await)?;
            out.insert(bound.parameter.clone(), value);
        }
        if let Some(oauth2) = &spec.oauth2 {
            self.oauth2(oauth2, &mut out, seen).await?;
        }
        Ok(out)
    }

    /// KEDA takes a failed value as empty; otherwise the error names the TriggerAuthentication.
    pub(super) fn lenient(&self, value: Result<String, String>) -> Result<String, String> {
        match value {
            Err(_) if self.auth.rules.compat.is_strict() => Ok(String::new()),
            other => other.map_err(|text| format!("{}: {text}", self.object)),
        }
    }

    /// Environment variables of the workload.
    async fn variables(
        &self,
        spec: &TriggerAuthenticationSpec,
        out: &mut Parameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), String> {
        for wanted in &spec.env {
            let container = match wanted.container_name.as_str() {
                "" => self.asked.container,
                name => name,
            };
            let found = self.auth.variables(self.asked.namespace, self.asked.template, container, seen).await;
            let value = found.map(|mut variables| variables.remove(&wanted.name).unwrap_or_default());
            let value = self.lenient(value.map_err(|error| error.to_string()))?;
            out.insert(wanted.parameter.clone(), value);
        }
        Ok(())
    }

    /// The content of a file, which replaces all other parameters.
    async fn file(&self, file: &str) -> Result<Parameters, String> {
        if self.object.kind != SourceKind::ClusterTriggerAuthentication {
            let kind = self.asked.authentication.map(|own| own.kind.as_str()).unwrap_or_default();
            return Err(format!(
                "filePath is only supported for ClusterTriggerAuthentication, got kind: {kind}"
            ));
        }
        files::parameters(self.auth.rules.file_root.as_deref(), file).await
    }

    async fn config_map_value(
        &self,
        target: &KeyTarget,
        seen: &mut Vec<SourceRef>,
    ) -> Result<String, String> {
        let object = self.noted(SourceKind::ConfigMap, &target.name, seen);
        let value = match self.auth.objects.config_map(&self.lookup, &target.name).await {
            Ok(mut data) => data.remove(&target.key).ok_or_else(|| no_key(&object, &target.key)),
            Err(failure) => Err(unread(&object, &failure)),
        };
        self.lenient(value)
    }

    async fn secret_value(&self, name: &str, key: &str, seen: &mut Vec<SourceRef>) -> Result<String, String> {
        let object = self.noted(SourceKind::Secret, name, seen);
        if !self.auth.may_read_secrets(&self.lookup) {
            let own = &self.auth.rules.cluster_namespace;
            let text = format!("{object} is not read: secrets are restricted to namespace {own}");
            return self.lenient(Err(text));
        }
        let value = match self.auth.objects.secret(&self.lookup, name).await {
            Ok(mut data) => data.remove(key).ok_or_else(|| no_key(&object, key)).and_then(|value| {
                String::from_utf8(value)
                    .map_err(|_| format!("the value of key {key:?} of {object} is not text"))
            }),
            Err(failure) => Err(unread(&object, &failure)),
        };
        self.lenient(value)
    }

    fn noted(&self, kind: SourceKind, name: &str, seen: &mut Vec<SourceRef>) -> SourceRef {
        let object = SourceRef { kind, namespace: self.lookup.clone(), name: name.to_owned() };
        note(seen, object.clone());
        object
    }

    /// A new token of a service account.
    pub(super) async fn token(
        &self,
        namespace: &str,
        account: &str,
        seen: &mut Vec<SourceRef>,
    ) -> Result<String, String> {
        let name = account.to_owned();
        let object = SourceRef { kind: SourceKind::ServiceAccount, namespace: namespace.to_owned(), name };
        note(seen, object.clone());
        let token = self.auth.objects.token(namespace, account, self.auth.rules.token_expiry).await;
        token.map_err(|failure| {
            if failure.not_found {
                format!("{object} does not exist")
            } else {
                format!("failed to get a token of {object}: {}", failure.text)
            }
        })
    }

    /// Refuses secret managers of clouds; KEDA ignores two of them.
    fn refuse_clouds(&self, spec: &TriggerAuthenticationSpec) -> Result<(), String> {
        let strict = self.auth.rules.compat.is_strict();
        let clouds = [
            ("azureKeyVault", spec.azure_key_vault.is_some()),
            ("gcpSecretManager", spec.gcp_secret_manager.is_some() && !strict),
            ("awsSecretManager", spec.aws_secret_manager.is_some() && !strict),
        ];
        match clouds.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(format!("{}: {name} is not supported yet", self.object)),
            None => Ok(()),
        }
    }

    async fn oauth2(
        &self,
        oauth2: &OAuth2,
        out: &mut Parameters,
        seen: &mut Vec<SourceRef>,
    ) -> Result<(), String> {
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
}

fn no_key(object: &SourceRef, key: &str) -> String {
    format!("{object} has no key {key:?}")
}

fn unread(object: &SourceRef, failure: &super::FetchError) -> String {
    if failure.not_found {
        format!("{object} does not exist")
    } else {
        format!("failed to read {object}: {}", failure.text)
    }
}

/// The name in the API.
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
