//! Reads autoscaler manifests strictly. Every problem has its line and column.

use serde::de::DeserializeOwned;

use crate::autoscaling::{self, Defaults, FeatureGates, Version, Versioned, v2, validation};
use crate::field::FieldError;
use crate::plimsoll::{self, Autoscaler, proposal};
use crate::yaml::{Diagnostic, Document, Node, nearest};

/// The content of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Manifest {
    /// A HorizontalPodAutoscaler, in the version it was written in, as it was written.
    Hpa(Box<Versioned>),
    /// An Autoscaler, as it was written.
    Autoscaler(Box<Autoscaler>),
    /// An autoscaler in the form once proposed as `autoscaling/v2alpha1`, as it was written.
    Proposal(Box<proposal::HorizontalPodAutoscaler>),
    /// Another kind.
    Other {
        /// Group and version.
        api_version: String,
        /// Kind.
        kind: String,
    },
}

impl Manifest {
    /// Reads a document. Unknown fields, wrong types and unknown versions of known kinds are problems.
    pub fn read(document: &Document) -> Result<Self, Vec<Diagnostic>> {
        let api_version = text_of(document, "apiVersion")?;
        let kind = text_of(document, "kind")?;
        if kind == autoscaling::KIND && api_version == proposal::PROPOSAL_API_VERSION {
            return Ok(Self::Proposal(document.decode()?));
        }
        if kind == plimsoll::KIND && api_version.starts_with(plimsoll::GROUP) {
            if api_version != plimsoll::API_VERSION {
                let text =
                    format!("Autoscaler has no version {api_version}; known: {}", plimsoll::API_VERSION);
                return Err(vec![document.problem("apiVersion", text)]);
            }
            return Ok(Self::Autoscaler(document.decode()?));
        }
        if kind == autoscaling::KIND {
            let Some(version) = Version::from_api_version(&api_version) else {
                return Err(vec![unknown_version(document, &api_version)]);
            };
            return Ok(Self::Hpa(Box::new(decode_hpa(document, version)?)));
        }
        Ok(Self::Other { api_version, kind })
    }
}

fn decode_hpa(document: &Document, version: Version) -> Result<Versioned, Vec<Diagnostic>> {
    fn read<T: DeserializeOwned>(document: &Document) -> Result<T, Vec<Diagnostic>> {
        document.decode()
    }
    Ok(match version {
        Version::V1 => Versioned::V1(read(document)?),
        Version::V2 => Versioned::V2(read(document)?),
        Version::V2beta1 => Versioned::V2beta1(read(document)?),
        Version::V2beta2 => Versioned::V2beta2(read(document)?),
    })
}

/// The object as the API server would store it, or its validation errors.
pub fn admit_hpa(
    document: &Document,
    mut hpa: Versioned,
    gates: FeatureGates,
) -> Result<v2::HorizontalPodAutoscaler, Vec<Diagnostic>> {
    hpa.set_defaults();
    let mut stored =
        hpa.into_v2().map_err(|e| vec![document.problem("metadata.annotations", e.to_string())])?;
    if stored.metadata.namespace.is_empty() {
        stored.metadata.namespace = "default".into();
    }
    stored.set_defaults();
    let faults = validation::validate_create(&stored, gates);
    if faults.is_empty() {
        Ok(stored)
    } else {
        Err(faults.iter().map(|fault| placed(document, fault)).collect())
    }
}

/// An Autoscaler as it would be stored, or its validation errors.
pub fn admit_autoscaler(
    document: &Document,
    mut autoscaler: Autoscaler,
) -> Result<Autoscaler, Vec<Diagnostic>> {
    if autoscaler.metadata.namespace.is_empty() {
        autoscaler.metadata.namespace = "default".into();
    }
    autoscaler.set_defaults();
    let faults = plimsoll::validate_create(&autoscaler);
    if faults.is_empty() {
        Ok(autoscaler)
    } else {
        Err(faults.iter().map(|fault| placed(document, fault)).collect())
    }
}

/// The Autoscaler to which a proposed autoscaler converts.
pub fn admit_proposal(
    document: &Document,
    proposed: proposal::HorizontalPodAutoscaler,
) -> Result<Autoscaler, Vec<Diagnostic>> {
    let placed =
        |faults: Vec<FieldError>| faults.iter().map(|fault| placed(document, fault)).collect::<Vec<_>>();
    admit_autoscaler(document, proposed.into_autoscaler().map_err(placed)?)
}

/// A validation error at the position of its field.
pub fn placed(document: &Document, fault: &FieldError) -> Diagnostic {
    document.problem(&fault.field, fault.message()).in_path(&fault.field)
}

/// All problems of a document of a kind that [`Manifest`] reads: those of its fields, and those that validation finds in the
/// fields that can be read. A document of another kind has none here.
pub fn problems(document: &Document, gates: FeatureGates) -> Vec<Diagnostic> {
    let (api_version, kind) = match (text_of(document, "apiVersion"), text_of(document, "kind")) {
        (Ok(api_version), Ok(kind)) => (api_version, kind),
        (first, second) => return [first.err(), second.err()].into_iter().flatten().flatten().collect(),
    };
    let hpa = |document: &Document, version| {
        fn one<T: DeserializeOwned>(
            document: &Document,
            gates: FeatureGates,
            versioned: impl FnOnce(T) -> Versioned,
        ) -> Vec<Diagnostic> {
            problems_of(document.decode_partial(), |hpa| admit_hpa(document, versioned(hpa), gates).err())
        }
        match version {
            Version::V1 => one(document, gates, Versioned::V1),
            Version::V2 => one(document, gates, Versioned::V2),
            Version::V2beta1 => one(document, gates, Versioned::V2beta1),
            Version::V2beta2 => one(document, gates, Versioned::V2beta2),
        }
    };
    match (kind.as_str(), Version::from_api_version(&api_version)) {
        (autoscaling::KIND, Some(version)) => {
            let mut found = hpa(document, version);
            for problem in &mut found {
                // Drafts of ContainerResource had this field; its own nearest name would mislead.
                let is_container = problem.unknown_field().is_some_and(|field| field.name == "container");
                if is_container && problem.path.ends_with(".resource") {
                    let hint =
                        "the metric of one container has `type: ContainerResource` and `containerResource:`";
                    problem.hint = Some(hint.to_owned());
                }
            }
            let Some(other) = shape(document, version) else { return found };
            let (is, written) = (other.api_version(), version.api_version());
            let text = format!("the fields of this object are those of {is}, not of {written}");
            let hint = format!("write {is}; `plimsoll convert --to {written}` converts it");
            let mut all = vec![document.problem("apiVersion", text).in_path("apiVersion").with_hint(hint)];
            all.extend(hpa(document, other));
            all
        }
        (autoscaling::KIND, None) if api_version == proposal::PROPOSAL_API_VERSION => {
            problems_of(document.decode_partial(), |proposed| admit_proposal(document, proposed).err())
        }
        (plimsoll::KIND, _) if api_version == plimsoll::API_VERSION => {
            problems_of(document.decode_partial(), |autoscaler| admit_autoscaler(document, autoscaler).err())
        }
        _ => Manifest::read(document).err().unwrap_or_default(),
    }
}

/// The problems of the fields of a partly read document ([`Document::decode_partial`]), and those that `check` finds in what
/// could be read.
pub fn problems_of<T>(
    (value, mut found): (Option<T>, Vec<Diagnostic>),
    check: impl FnOnce(T) -> Option<Vec<Diagnostic>>,
) -> Vec<Diagnostic> {
    let mut more = value.and_then(check).unwrap_or_default();
    more.retain(|problem| !found.iter().any(|known| causes(known, problem)));
    // Validation has an order of its own, which is that of the API server.
    if found.is_empty() {
        return more;
    }
    found.extend(more);
    found.sort_by_key(|problem| problem.span);
    found
}

/// Whether a problem that validation finds follows from a field that could not be read.
fn causes(known: &Diagnostic, problem: &Diagnostic) -> bool {
    let inside = |path: &str| {
        problem.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let Some(unknown) = known.unknown_field() else { return inside(&known.path) };
    let is_meant = unknown.nearest.is_some_and(|name| inside(&format!("{}.{name}", known.path)));
    problem.path == known.path || is_meant
}

/// The version of which a document has the fields, if it has not those of the version that it names.
fn shape(document: &Document, written: Version) -> Option<Version> {
    decode_hpa(document, written).err()?;
    let others = [Version::V2, Version::V2beta2, Version::V2beta1, Version::V1];
    others.into_iter().find(|other| *other != written && decode_hpa(document, *other).is_ok())
}

fn text_of(document: &Document, name: &str) -> Result<String, Vec<Diagnostic>> {
    match document.root.get(name) {
        Some(node) => match Node::as_str(node) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(vec![document.problem(name, format!("{name} must be a text such as autoscaling/v2"))]),
        },
        None => {
            Err(vec![document.problem("", format!("this document has no {name}; every manifest needs one"))])
        }
    }
}

fn unknown_version(document: &Document, api_version: &str) -> Diagnostic {
    let known = [Version::V2, Version::V1, Version::V2beta2, Version::V2beta1].map(Version::api_version);
    let problem = document.problem(
        "apiVersion",
        format!("HorizontalPodAutoscaler has no version {api_version}; known: {}", known.join(", ")),
    );
    match nearest(api_version, known) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
        None => problem,
    }
}
