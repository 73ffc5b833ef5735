//! Autoscalers as users name them: `hpa/web`.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use api::names::subdomain_faults;
use api::yaml::nearest;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use cluster::AutoscalerKind;

use crate::failure::Failure;

/// An autoscaler a user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AutoscalerName {
    pub(crate) kind: AutoscalerKind,
    pub(crate) name: String,
}

/// The names of kinds; the first of each is the printed one.
const KINDS: [(AutoscalerKind, &[&str]); 4] = [
    (
        AutoscalerKind::Hpa,
        &[
            "hpa",
            "hpas",
            "horizontalpodautoscaler",
            "horizontalpodautoscalers",
            "horizontalpodautoscaler.autoscaling",
            "horizontalpodautoscalers.autoscaling",
        ],
    ),
    (
        AutoscalerKind::Autoscaler,
        &["autoscaler", "autoscalers", "pas", "autoscaler.plimsoll.dev", "autoscalers.plimsoll.dev"],
    ),
    (
        AutoscalerKind::ScaledObject,
        &["so", "scaledobject", "scaledobjects", "scaledobject.keda.sh", "scaledobjects.keda.sh"],
    ),
    (
        AutoscalerKind::ScaledJob,
        &["sj", "scaledjob", "scaledjobs", "scaledjob.keda.sh", "scaledjobs.keda.sh"],
    ),
];

/// The names of workloads, whose autoscaler is meant.
const WORKLOADS: [(&str, &[&str]); 4] = [
    ("Deployment", &["deploy", "deployment", "deployments", "deployment.apps", "deployments.apps"]),
    ("StatefulSet", &["sts", "statefulset", "statefulsets", "statefulset.apps", "statefulsets.apps"]),
    ("ReplicaSet", &["rs", "replicaset", "replicasets", "replicaset.apps", "replicasets.apps"]),
    ("ReplicationController", &["rc", "replicationcontroller", "replicationcontrollers"]),
];

/// A workload a user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkloadName {
    /// As in a scale target.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

impl WorkloadName {
    /// Reads `deploy/web` or `deploy web`; none if the words are not of that form.
    pub(crate) fn parse(words: &[&Path]) -> Option<Self> {
        let (word, name) = match words {
            [one] => one.to_str()?.split_once('/')?,
            [kind, name] => (kind.to_str()?, name.to_str()?),
            _ => return None,
        };
        let word = word.to_ascii_lowercase();
        let (kind, _) = WORKLOADS.iter().find(|(_, words)| words.contains(&word.as_str()))?;
        Some(Self { kind, name: name.to_owned() })
    }
}

/// The kind that a word means.
pub(crate) fn kind(word: &str) -> Option<AutoscalerKind> {
    let word = word.to_ascii_lowercase();
    KINDS.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(kind, _)| *kind)
}

/// Any word; shells offer the kinds there are.
#[derive(Clone)]
pub(crate) struct Word;

impl TypedValueParser for Word {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let kinds = KINDS.iter().filter_map(|(_, words)| words.first());
        Some(Box::new(kinds.chain([&"all"]).map(PossibleValue::new)))
    }
}

/// The most similar kind.
pub(crate) fn nearest_kind(word: &str) -> Option<&'static str> {
    // `pas` is near to many words that mean something else, such as pods.
    let words = KINDS.iter().flat_map(|(_, words)| words.iter().copied()).filter(|known| *known != "pas");
    nearest(word, words)
}

impl AutoscalerName {
    /// Reads `hpa/web`; none if it is not of that form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (word, name) = text.split_once('/')?;
        Some(Self { kind: kind(word)?, name: name.to_owned() })
    }

    /// What a list of words names, if it names autoscalers on a cluster rather than files: `hpa/web`, or `hpa web`.
    pub(crate) fn all(words: &[&Path], is_file: impl Fn(&Path) -> bool) -> Option<Vec<Self>> {
        let texts: Vec<&str> = words.iter().map(|word| word.to_str()).collect::<Option<_>>()?;
        if words.first().is_none_or(|first| is_file(first)) {
            return None;
        }
        if let (Some(kind), [_, names @ ..]) = (texts.first().and_then(|word| kind(word)), texts.as_slice()) {
            return Some(names.iter().map(|name| Self { kind, name: (*name).to_owned() }).collect());
        }
        // `hpa/web.yaml` that is not there is a file with a wrong name.
        let like_a_file = |text: &&str| {
            let end = Path::new(*text).extension().unwrap_or_default();
            ["yaml", "yml", "json"].iter().any(|known| end.eq_ignore_ascii_case(known))
        };
        if texts.iter().any(like_a_file) {
            return None;
        }
        texts.into_iter().map(Self::parse).collect()
    }

    /// Its name in the decisions API.
    pub(crate) fn record(&self) -> String {
        format!("{}.{}", self.kind.short(), self.name)
    }
}

impl fmt::Display for AutoscalerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.short(), self.name)
    }
}

/// Refuses invalid names before a request is sent.
pub(crate) fn check(what: &str, name: &str) -> Result<(), Failure> {
    if name.is_empty() {
        return Err(Failure::input(format!("the {what} is empty")));
    }
    if subdomain_faults(name).is_empty() {
        return Ok(());
    }
    Err(Failure::input(format!(
        "{name:?} cannot be a {what}: lower-case letters, digits, - and . only, and a letter or digit at both ends"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(words: &[&str], files: &[&str]) -> Option<String> {
        let paths: Vec<&Path> = words.iter().map(Path::new).collect();
        let found = AutoscalerName::all(&paths, |path| files.iter().any(|file| Path::new(file) == path))?;
        Some(found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn words_are_parsed_as_files_or_autoscalers() {
        for (words, expected) in [
            (&["hpa/web"][..], Some("hpa/web")),
            (&["hpa", "web"], Some("hpa/web")),
            (&["hpa", "web", "shop"], Some("hpa/web hpa/shop")),
            (&["HPA/web", "autoscaler/shop"], Some("hpa/web autoscaler/shop")),
            (&["horizontalpodautoscalers.autoscaling/web"], Some("hpa/web")),
            (&["pas/own"], Some("autoscaler/own")),
            (&["so/orders", "scaledobject/mails"], Some("so/orders so/mails")),
            (&["scaledobjects.keda.sh", "orders"], Some("so/orders")),
            (&["sj/mails", "ScaledJob/orders"], Some("sj/mails sj/orders")),
            (&["hpa"], Some("")),
            (&["hpa/"], Some("hpa/")),
            (&["web"], None),
            (&["deployment/web"], None),
            (&["hpa/web.yaml"], None),
            (&["hpa/web", "file"], None),
            (&[], None),
        ] {
            assert_eq!(all(words, &[]).as_deref(), expected, "{words:?}");
        }
        assert_eq!(all(&["hpa/web"], &["hpa/web"]), None, "a file of that name comes first");
    }

    #[test]
    fn workloads_are_parsed() {
        let parse = |words: &[&str]| {
            let paths: Vec<&Path> = words.iter().map(Path::new).collect();
            WorkloadName::parse(&paths).map(|found| format!("{}/{}", found.kind, found.name))
        };
        assert_eq!(parse(&["deploy/web"]).as_deref(), Some("Deployment/web"));
        assert_eq!(parse(&["Deployments.apps", "web"]).as_deref(), Some("Deployment/web"));
        assert_eq!(parse(&["sts/db"]).as_deref(), Some("StatefulSet/db"));
        for words in [&["hpa/web"][..], &["web"], &["deploy"], &["deploy", "a", "b"], &[]] {
            assert_eq!(parse(words), None, "{words:?}");
        }
    }

    #[test]
    fn invalid_names_are_refused() {
        assert!(check("name", "web-1.shop").is_ok());
        for name in ["", "..", "a/b", "Web", "a b"] {
            assert!(check("name", name).is_err(), "{name}");
        }
    }
}
