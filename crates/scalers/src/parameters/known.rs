//! Keys that nobody knows, and those that will go.

use std::fmt;

use api::yaml::nearest;

use super::reader::find;
use super::{Parameter, Place};
use crate::Trigger;

/// A key of a trigger that its scaler does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// As it was written.
    pub key: String,
    /// What was probably meant.
    pub nearest: Option<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown parameter {:?}", self.key)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest:?}?"),
            None => Ok(()),
        }
    }
}

/// Keys in the metadata of a trigger that its scaler does not know, in order.
pub fn unknown(parameters: &[Parameter], trigger: &Trigger) -> Vec<Unknown> {
    let of = |place: Place| {
        let there = parameters.iter().filter(move |parameter| parameter.places.contains(&place));
        there.flat_map(|parameter| parameter.keys.iter().copied())
    };
    let mut known: Vec<String> = of(Place::Metadata).map(str::to_owned).collect();
    known.extend(of(Place::Environment).map(|key| format!("{key}FromEnv")));
    let keys = trigger.metadata.keys().filter(|key| !known.contains(key));
    keys.map(|key| Unknown {
        key: key.clone(),
        nearest: nearest(key, known.iter().map(String::as_str)).map(str::to_owned),
    })
    .collect()
}

/// What users of a trigger should know of its parameters; an event `KEDAScalerInfo` each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it is a warning.
    pub warning: bool,
    /// In one sentence.
    pub text: String,
}

/// What users of a trigger should know of its parameters: `scaler X info: …` and the like.
pub fn notices(parameters: &[Parameter], trigger: &Trigger) -> Vec<Notice> {
    let there = parameters.iter().filter(|parameter| find(parameter, trigger).is_some());
    let deprecated = there.filter_map(|parameter| parameter.deprecated);
    let deprecated = deprecated
        .map(|why| Notice { warning: false, text: format!("scaler {} info: {why}", trigger.type_) });
    let public = public_client(parameters, trigger);
    deprecated.chain(public.map(|text| Notice { warning: true, text: text.to_owned() })).collect()
}

/// What to say of a client that shows nothing but its name.
fn public_client(parameters: &[Parameter], trigger: &Trigger) -> Option<&'static str> {
    let text = |key: &str| {
        let parameter = parameters.iter().find(|parameter| parameter.keys.contains(&key));
        parameter.and_then(|parameter| find(parameter, trigger))
    };
    let mode =
        |mode: &str| text("authModes").is_some_and(|modes| modes.split(',').any(|item| item.trim() == mode));
    let oauth = mode("oauth") && text("oauthTokenURI").is_some() && text("clientID").is_some();
    let public = oauth && !mode("tls") && text("clientSecret").is_none();
    public.then_some(
        "OAuth is configured without clientSecret and without mTLS (RFC 8705). Add a clientSecret or enable mTLS to \
         ensure secure authentication.",
    )
}
