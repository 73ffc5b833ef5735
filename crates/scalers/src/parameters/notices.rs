//! Unknown, deprecated and insecure parameters.

use std::fmt;

use api::yaml::nearest;

use super::reader::find;
use super::{Parameter, ParameterSource};
use crate::Trigger;

/// A key of a trigger's metadata that its scaler does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownParameter {
    /// The key as written.
    pub key: String,
    /// The most similar known key.
    pub nearest: Option<String>,
}

impl fmt::Display for UnknownParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown parameter {:?}", self.key)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest:?}?"),
            None => Ok(()),
        }
    }
}

/// The unknown keys in the metadata of a trigger, in order.
pub fn unknown<'a>(
    parameters: &'a [Parameter],
    trigger: &'a Trigger,
) -> impl Iterator<Item = UnknownParameter> + use<'a> {
    let of = |source: ParameterSource| {
        let there = parameters.iter().filter(move |parameter| parameter.sources.contains(&source));
        there.flat_map(|parameter| parameter.keys.iter().copied())
    };
    let mut known: Vec<String> = of(ParameterSource::Metadata).map(str::to_owned).collect();
    known.extend(of(ParameterSource::Environment).map(|key| format!("{key}FromEnv")));
    // `query.*` stands for every key that begins with `query.`.
    let families: Vec<&str> = of(ParameterSource::Metadata).filter_map(|key| key.strip_suffix('*')).collect();
    trigger.metadata.keys().filter_map(move |key| {
        let is_known = known.contains(key) || families.iter().any(|family| key.starts_with(family));
        (!is_known).then(|| UnknownParameter {
            key: key.clone(),
            nearest: nearest(key, known.iter().map(String::as_str)).map(str::to_owned),
        })
    })
}

/// A notice about a trigger's parameters, reported as an event `KEDAScalerInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterNotice {
    /// Whether the event is a warning.
    pub warning: bool,
    /// The text of the event.
    pub text: String,
}

/// The notices about a trigger's parameters, e.g. `scaler X info: …`.
pub fn notices(parameters: &[Parameter], trigger: &Trigger) -> Vec<ParameterNotice> {
    let there = parameters.iter().filter(|parameter| find(parameter, trigger).is_some());
    let accepted = there.filter(|parameter| parameter.removed_from(trigger.profile).is_none());
    let old = accepted.filter(|parameter| trigger.profile >= parameter.deprecated_in);
    // KEDA refuses the metric type of external metrics before it reads parameters.
    let read = trigger.metric_type != "Utilization";
    let deprecated = old.filter_map(|parameter| parameter.deprecated).filter(move |_| read);
    let deprecated = deprecated
        .map(|why| ParameterNotice { warning: false, text: format!("scaler {} info: {why}", trigger.type_) });
    let public = public_client(parameters, trigger);
    deprecated.chain(public.map(|text| ParameterNotice { warning: true, text: text.to_owned() })).collect()
}

/// The warning about an OAuth client without a secret or certificate.
fn public_client(parameters: &[Parameter], trigger: &Trigger) -> Option<&'static str> {
    let text = |key: &str| {
        let parameter = parameters.iter().find(|parameter| parameter.keys.contains(&key));
        parameter.and_then(|parameter| find(parameter, trigger))
    };
    let mode =
        |mode: &str| text("authModes").is_some_and(|modes| modes.split(',').any(|item| item.trim() == mode));
    let oauth = mode("oauth") && text("oauthTokenURI").is_some() && text("clientID").is_some();
    // Only these log in with OAuth.
    let uses = match &*trigger.type_ {
        "pulsar" => true,
        "prometheus" => trigger.behavior().prometheus_has_oauth,
        _ => false,
    };
    let public = uses && oauth && !mode("tls") && text("clientSecret").is_none();
    public.then_some(
        "OAuth is configured without clientSecret and without mTLS (RFC 8705). Add a clientSecret or enable mTLS to \
         ensure secure authentication.",
    )
}
