//! Autoscalers of every version: decode, default, validate, convert, describe.

use api::autoscaling::{
    Defaults, FeatureGates, Version, Versioned, describe, print, v2::HorizontalPodAutoscaler, validation,
};
use api::convert;
use api::manifest::{Manifest, admit_autoscaler, admit_hpa, admit_proposal};
use api::plimsoll::{self, Autoscaler};
use api::yaml::{Diagnostic, Document, SourceFile, parse};

use super::text::render;

/// A file of manifests.
pub fn run(data: &[u8]) {
    let Ok(documents) = SourceFile::from_bytes("fuzz.yaml", data).and_then(|source| parse(&source)) else {
        return;
    };
    for document in documents.into_iter().flat_map(Document::into_items) {
        // As the API server reads it,
        if let Ok(hpa) = Versioned::decode(&document.root.to_json()) {
            converted(hpa);
        }
        // and as we read what a user wrote.
        if let Err(problems) = Manifest::read(&document).and_then(|manifest| admitted(&document, manifest)) {
            problems.iter().for_each(render);
        }
    }
}

fn admitted(document: &Document, manifest: Manifest) -> Result<(), Vec<Diagnostic>> {
    match manifest {
        Manifest::Hpa(hpa) => {
            for gates in
                [FeatureGates::default(), FeatureGates { scale_to_zero: true, ..FeatureGates::default() }]
            {
                let _ = admit_hpa(document, (*hpa).clone(), gates);
            }
            shown(&admit_hpa(document, *hpa, FeatureGates::default())?);
        }
        Manifest::Autoscaler(autoscaler) => ours(admit_autoscaler(document, *autoscaler)?),
        Manifest::Proposal(proposal) => ours(admit_proposal(document, *proposal)?),
        Manifest::Other { .. } => {}
    }
    Ok(())
}

fn ours(autoscaler: Autoscaler) {
    let _ = convert::spec_of_autoscaler(&autoscaler);
    let _ = plimsoll::validate_update(&autoscaler, &autoscaler);
    let _ = plimsoll::v2_view(autoscaler.clone());
    if let Ok(hpa) = plimsoll::to_v2(autoscaler) {
        shown(&hpa);
    }
}

/// Whatever could be decoded, valid or not, converts to every version and back.
fn converted(mut hpa: Versioned) {
    hpa.set_defaults();
    let Ok(mut hpa) = hpa.into_v2() else { return };
    hpa.set_defaults();
    for version in [Version::V1, Version::V2, Version::V2beta1, Version::V2beta2] {
        if let Ok(back) = Versioned::from_v2(hpa.clone(), version).into_v2() {
            let _ = validation::validate_update(&back, &hpa, FeatureGates::default());
        }
    }
    let _ = validation::validate_create(&hpa, FeatureGates::default());
    let _ = plimsoll::to_v2(plimsoll::from_v2(hpa.clone()));
    shown(&hpa);
}

fn shown(hpa: &HorizontalPodAutoscaler) {
    let _ = describe::describe_v2(hpa, None);
    if let Versioned::V1(v1) = Versioned::from_v2(hpa.clone(), Version::V1) {
        let _ = describe::describe_v1(&v1, None);
    }
    let now = jiff::Timestamp::UNIX_EPOCH;
    let _ = print::table([hpa], now);
    let spec = convert::spec_of_hpa(hpa);
    let status = convert::engine_status(&hpa.status);
    let _ = (spec, status);
}
