//! Our scalers, which are kept from one state to the next as the operator keeps those of an object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use scalers::backends::Backends;
use scalers::dial::Dialer;
use scalers::parameters::KedaProfile;
use scalers::tenant_files::TenantFiles;
use scalers::web::HttpSettings;
use scalers::{Owner, Scaler, ScalerError, Trigger, table};

use super::keda::ScalerAnswer;
use super::script::ScriptTrigger;

pub(super) struct OurScalers {
    backends: Backends,
    built: BTreeMap<String, Arc<dyn Scaler>>,
}

impl OurScalers {
    pub(super) fn new(environment: &BTreeMap<String, String>) -> Self {
        // With a proxy, names are resolved by the proxy. A dialer that refuses addresses would resolve them itself.
        let dialer = if environment.contains_key("HTTPS_PROXY") {
            Dialer::unrestricted()
        } else {
            Dialer::allowing_loopback()
        };
        let authorities = environment.get("SSL_CERT_FILE").map(|path| std::fs::read(path).unwrap());
        let settings = HttpSettings {
            dialer,
            authorities: authorities.unwrap_or_default(),
            // Responses are not cached.
            fresh: Duration::ZERO,
            ..HttpSettings::from_environment(|name| environment.get(name).cloned())
        };
        let files = TenantFiles::of(Some(std::env::temp_dir()));
        let backends = Backends::without_cluster(settings, Compat::Better).with_files(files);
        Self { backends, built: BTreeMap::new() }
    }

    pub(super) async fn read(&mut self, trigger: &ScriptTrigger) -> ScalerAnswer {
        match self.response(trigger).await {
            Ok(response) => response,
            Err(error) => ScalerAnswer { error: error.to_string(), ..ScalerAnswer::default() },
        }
    }

    async fn response(&mut self, trigger: &ScriptTrigger) -> Result<ScalerAnswer, ScalerError> {
        let ScriptTrigger { type_, metadata, auth } = trigger;
        let key = format!("{type_} {metadata:?} {auth:?}");
        let scaler = match self.built.get(&key) {
            Some(scaler) => Arc::clone(scaler),
            None => {
                let owner = Owner { kind: "ScaledObject".into(), namespace: "ns".into(), name: "so".into() };
                let trigger = Trigger {
                    owner,
                    type_: type_.clone(),
                    metadata: metadata.clone(),
                    auth: auth.clone(),
                    http_timeout: Duration::from_secs(3),
                    profile: KedaProfile::V2_21,
                    ..Trigger::default()
                };
                let scaler = table::build(&trigger, &self.backends)?;
                self.built.insert(key, Arc::clone(&scaler));
                scaler
            }
        };
        let specs = scaler.specs().await?;
        let metric = specs[0].external.as_ref().unwrap().metric.name.clone();
        let reading = scaler.read(&metric).await?;
        let values = reading.values.iter().map(|value| value.value.to_string()).collect();
        Ok(ScalerAnswer { metric, values, active: reading.active, error: String::new() })
    }
}
