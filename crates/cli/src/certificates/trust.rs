//! Writes our CA as `caBundle` into the webhook configuration and the APIServices.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::lease::Leadership;
use cluster::request::{ApiError, Request, below, send, send_leading};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use serve::Keyring;
use serve::admission::set_ca_bundle;

use super::owner::{Owner, OwnerLease, OwnerWatch};

/// How often the objects are checked.
const CHECK_PERIOD: Duration = Duration::from_secs(30);
/// How often they are checked while another process owns them.
const RETRY_PERIOD: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Why the CA of a server that answers is kept.
const CA_IN_USE_MESSAGE: &str = "a server answers with the CA that is there";

/// The objects that name our CA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaBundleObjects {
    /// The ValidatingWebhookConfiguration.
    pub(crate) webhook: Option<String>,
    /// The APIServices, such as `v1beta1.metrics.k8s.io`.
    pub(crate) api_services: Vec<String>,
    /// The names of our certificate; an APIService or webhook is ours if its Service has one of them.
    pub(crate) names: Vec<String>,
}

/// The CA of the serving certificate.
pub(crate) enum ServingCa {
    /// Unknown, or fixed.
    Fixed(Option<String>),
    /// That of a keyring, which may change.
    Shared(Keyring),
}

impl ServingCa {
    fn pem(&self) -> Option<String> {
        match self {
            Self::Fixed(pem) => pem.clone(),
            Self::Shared(keyring) => Some(keyring.authorities()),
        }
    }

    async fn changed(&self, from: &str) {
        match self {
            Self::Fixed(_) => std::future::pending().await,
            Self::Shared(keyring) => keyring.other_authorities(from).await,
        }
    }
}

/// Keeps the `caBundle`s up to date while this replica is the leader and its CA is known. Missing objects are not created:
/// a user who does not want the webhook leaves its configuration out. With an `owner`, objects of another process that renews
/// that Lease are kept as they are.
pub(crate) async fn keep(
    client: Client,
    leadership: Leadership,
    objects: CaBundleObjects,
    owner: Option<OwnerLease>,
    authority: ServingCa,
) {
    let mut injector = CaInjector::new(client, leadership, objects, owner);
    loop {
        // A new leader writes at once: until then the API server does not trust a new installation.
        injector.leadership.acquired().await;
        let Some(pem) = authority.pem() else { return };
        let period = if injector.inject(&pem).await { CHECK_PERIOD } else { RETRY_PERIOD };
        let _ = tokio::time::timeout(period, authority.changed(&pem)).await;
    }
}

/// Writes our CA, unless another process owns an object.
struct CaInjector {
    client: Client,
    leadership: Leadership,
    objects: CaBundleObjects,
    owners: Option<OwnerWatch>,
    /// The bundles that were ours since the start of this process.
    own: BTreeSet<String>,
    /// Bundles of other servers that answer.
    answering: Vec<String>,
    /// The refusals that were logged.
    logged: BTreeSet<String>,
    /// Whether it was logged that a webhook leads to another Service.
    has_logged_service: bool,
}

/// How an attempt to write a `caBundle` ended.
#[derive(Debug, PartialEq, Eq)]
enum CaWrite {
    /// It is as it should be.
    Done,
    /// Another process owns the object: who, or how this is known.
    Refused(String),
}

impl CaInjector {
    fn new(
        client: Client,
        leadership: Leadership,
        objects: CaBundleObjects,
        owner: Option<OwnerLease>,
    ) -> Self {
        Self {
            client,
            leadership,
            objects,
            owners: owner.map(OwnerWatch::new),
            own: BTreeSet::new(),
            answering: Vec::new(),
            logged: BTreeSet::new(),
            has_logged_service: false,
        }
    }

    /// Writes the CA where it is missing. Returns whether no other process prevented it.
    async fn inject(&mut self, authority: &str) -> bool {
        self.answering.clear();
        self.own.insert(STANDARD.encode(authority));
        let mut results = Vec::new();
        for name in self.objects.api_services.clone() {
            let result = self.api_service(&name, authority).await;
            results.push((name, result));
        }
        // After the APIServices, which show which CAs are in use.
        if let Some(name) = self.objects.webhook.clone() {
            let result = self.webhook(&name, authority).await;
            results.push((name, result));
        }
        let mut refusals = BTreeSet::new();
        for (name, result) in results {
            match result {
                Ok(CaWrite::Done) => {}
                Ok(CaWrite::Refused(reason)) => {
                    if !self.logged.contains(&reason) {
                        tracing::warn!(
                            name,
                            reason,
                            "our CA is not written: another process owns this object"
                        );
                    }
                    refusals.insert(reason);
                }
                Err(error) => tracing::warn!(%error, name, "failed to write our CA"),
            }
        }
        self.logged = refusals;
        self.logged.is_empty()
    }

    async fn webhook(&mut self, name: &str, authority: &str) -> Result<CaWrite, ApiError> {
        let path = below(WEBHOOKS, [name]);
        let Some(found) = read(&self.client, &path).await? else { return Ok(CaWrite::Done) };
        let mut changed = found.clone();
        if !set_ca_bundle(&mut changed, authority) {
            return Ok(CaWrite::Done);
        }
        let both = client_configs(&found).zip(client_configs(&changed));
        let (ours, others): (Vec<&Value>, Vec<&Value>) =
            both.filter(|(old, new)| old != new).map(|(old, _)| old).partition(|config| self.is_ours(config));
        // A webhook of another server does not prevent our CA from being written into our own webhooks.
        let has_ours = client_configs(&found).any(|config| self.is_ours(config));
        let configs = if has_ours { &ours } else { &others };
        let bundles: Vec<&str> = configs.iter().filter_map(|config| text(config, "/caBundle")).collect();
        let namespaces: BTreeSet<&str> =
            configs.iter().filter_map(|config| text(config, "/service/namespace")).collect();
        let is_foreign = bundles.iter().any(|bundle| !self.is_own(bundle, authority));
        for namespace in namespaces {
            if let Some(reason) = self.refusal(namespace, is_foreign).await {
                return Ok(CaWrite::Refused(reason));
            }
        }
        if bundles.iter().any(|bundle| self.answering.iter().any(|other| other == bundle)) {
            return Ok(CaWrite::Refused(CA_IN_USE_MESSAGE.to_owned()));
        }
        // During a switch from KEDA its webhooks still answer, with certificates of KEDA's CA.
        if let Some(config) = others.first()
            && !std::mem::replace(&mut self.has_logged_service, true)
        {
            let service = text(config, "/service/name").unwrap_or_default();
            tracing::info!(
                name,
                service,
                "our CA is not written: the webhook leads to a Service that our certificate does not name (--webhooks-service-name)"
            );
        }
        if ours.is_empty() {
            return Ok(CaWrite::Done);
        }
        self.restore_others(&found, &mut changed);
        write(&self.client, &self.leadership, Method::PUT, path, "application/json", &changed).await?;
        tracing::info!(name, "wrote our CA into the webhook configuration");
        Ok(CaWrite::Done)
    }

    /// Undoes the change of webhooks that lead to a Service without a name of our certificate.
    fn restore_others(&self, found: &Value, changed: &mut Value) {
        let (Some(old), Some(new)) = (
            found.get("webhooks").and_then(Value::as_array),
            changed.get_mut("webhooks").and_then(Value::as_array_mut),
        ) else {
            return;
        };
        for (old, new) in old.iter().zip(new) {
            if old.get("clientConfig").is_none_or(|config| !self.is_ours(config)) {
                new.clone_from(old);
            }
        }
    }

    /// Writes the CA into an APIService that names our Service; others are not changed.
    async fn api_service(&mut self, name: &str, authority: &str) -> Result<CaWrite, ApiError> {
        let path = below(API_SERVICES, [name]);
        let Some(found) = read(&self.client, &path).await? else { return Ok(CaWrite::Done) };
        let namespace = text(&found, "/spec/service/namespace").unwrap_or_default();
        let ours = found.get("spec").is_some_and(|spec| self.is_ours(spec));
        // A user has switched off verification.
        let checks = found.pointer("/spec/insecureSkipTLSVerify").and_then(Value::as_bool) != Some(true);
        let (bundle, stored) = (STANDARD.encode(authority), text(&found, "/spec/caBundle"));
        if !ours || !checks || stored == Some(bundle.as_str()) {
            return Ok(CaWrite::Done);
        }
        let foreign = stored.filter(|stored| !self.is_own(stored, authority));
        if let Some(reason) = self.refusal(namespace, foreign.is_some()).await {
            return Ok(CaWrite::Refused(reason));
        }
        // An election has decided; without one, only the API server knows about other servers.
        if let Some(foreign) = foreign.filter(|_| !self.leadership.has_election())
            && answers(&self.client, &found).await
        {
            self.answering.push(foreign.to_owned());
            return Ok(CaWrite::Refused(CA_IN_USE_MESSAGE.to_owned()));
        }
        let patch = json!({"spec": {"caBundle": bundle}});
        let content = "application/merge-patch+json";
        write(&self.client, &self.leadership, Method::PATCH, path, content, &patch).await?;
        tracing::info!(name, "wrote our CA into an APIService");
        Ok(CaWrite::Done)
    }

    /// Whether the Service in the spec of an APIService or in the configuration of a webhook has a name of our certificate.
    fn is_ours(&self, config: &Value) -> bool {
        let part = |field: &str| text(config, field).unwrap_or_default();
        let name = format!("{}.{}.svc", part("/service/name"), part("/service/namespace"));
        self.objects.names.contains(&name)
    }

    /// Why an object whose Service is in `namespace` must not be changed. `is_foreign`: it has a CA that is not ours.
    async fn refusal(&mut self, namespace: &str, is_foreign: bool) -> Option<String> {
        let has_election = self.leadership.has_election();
        match self.owners.as_mut()?.owner(&self.client, namespace, has_election).await {
            Owner::Other(holder) => Some(format!("{holder} renews the lease of its operators")),
            Owner::Unknown(error) if is_foreign => {
                Some(format!("it has a CA, and whether its operator runs is unknown: {error}"))
            }
            Owner::Nobody | Owner::Unknown(_) => None,
        }
    }

    /// Whether a stored bundle is an earlier or later one of ours: a renewed bundle keeps the CA before it for a while.
    fn is_own(&self, stored: &str, authority: &str) -> bool {
        let decoded = STANDARD.decode(stored).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let shares =
            |pem: String| certificates(&pem).any(|one| certificates(authority).any(|own| own == one));
        self.own.contains(stored) || decoded.is_some_and(shares)
    }
}

/// The certificates in a PEM text.
fn certificates(pem: &str) -> impl Iterator<Item = &str> {
    let parts = pem.split_inclusive("-----END CERTIFICATE-----").map(str::trim);
    parts.filter(|part| part.starts_with("-----BEGIN CERTIFICATE-----"))
}

fn client_configs(configuration: &Value) -> impl Iterator<Item = &Value> {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    webhooks.filter_map(|webhook| webhook.get("clientConfig"))
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Whether a server answers the API server with a certificate of the CA that is in an APIService. The condition `Available` does
/// not tell: kube-apiserver verifies certificates when it forwards a request, but not when it checks availability.
async fn answers(client: &Client, api_service: &Value) -> bool {
    let [group, version] =
        ["/spec/group", "/spec/version"].map(|field| text(api_service, field).unwrap_or_default());
    send(client, Request::get(below("/apis", [group, version]), "", REQUEST_TIMEOUT)).await.is_ok()
}

async fn read(client: &Client, path: &str) -> Result<Option<Value>, ApiError> {
    match send(client, Request::get(path.to_owned(), "", REQUEST_TIMEOUT)).await {
        Ok(body) => Ok(serde_json::from_slice(&body).ok()),
        Err(error) if error.code == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn write(
    client: &Client,
    leadership: &Leadership,
    method: Method,
    path: String,
    content: &'static str,
    body: &Value,
) -> Result<(), ApiError> {
    let request = Request {
        method,
        body: Some((content, body.to_string().into_bytes())),
        ..Request::get(path, "", REQUEST_TIMEOUT)
    };
    send_leading(client, request, leadership).await.map(drop)
}

#[cfg(test)]
mod tests;
