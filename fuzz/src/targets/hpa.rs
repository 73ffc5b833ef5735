//! HorizontalPodAutoscalers of every version, and Autoscalers: they are decoded, defaulted, validated, converted and described.

use api::autoscaling::{
    Defaults, FeatureGates, Version, Versioned, describe, print, v2::HorizontalPodAutoscaler, validation,
};
use api::convert;
use api::manifest::{Manifest, admit_autoscaler, admit_hpa, admit_proposal};
use api::plimsoll::{self, Autoscaler};
use api::yaml::{Diagnostic, Document, SourceFile, parse};

use super::text::render;

/// The input is a file with manifests.
pub fn run(data: &[u8]) {
    let Ok(documents) = SourceFile::from_bytes("fuzz.yaml", data).and_then(|source| parse(&source)) else {
        return;
    };
    for document in documents.into_iter().flat_map(Document::into_items) {
        // The API server decodes leniently.
        if let Ok(hpa) = Versioned::decode(&document.root.to_json()) {
            check_conversions(hpa);
        }
        // Manifests of users are decoded strictly, with diagnostics.
        if let Err(problems) = Manifest::read(&document).and_then(|manifest| admit(&document, manifest)) {
            problems.iter().for_each(render);
        }
    }
}

fn admit(document: &Document, manifest: Manifest) -> Result<(), Vec<Diagnostic>> {
    match manifest {
        Manifest::Hpa(hpa) => {
            for gates in
                [FeatureGates::default(), FeatureGates { scale_to_zero: true, ..FeatureGates::default() }]
            {
                let _ = admit_hpa(document, (*hpa).clone(), gates);
            }
            render_hpa(&admit_hpa(document, *hpa, FeatureGates::default())?);
        }
        Manifest::Autoscaler(autoscaler) => check_autoscaler(admit_autoscaler(document, *autoscaler)?),
        Manifest::Proposal(proposal) => check_autoscaler(admit_proposal(document, *proposal)?),
        Manifest::Other { .. } => {}
    }
    Ok(())
}

fn check_autoscaler(autoscaler: Autoscaler) {
    let _ = convert::spec_of_autoscaler(&autoscaler);
    let _ = plimsoll::validate_update(&autoscaler, &autoscaler);
    let _ = plimsoll::v2_view(autoscaler.clone());
    if let Ok(hpa) = plimsoll::to_v2(autoscaler) {
        render_hpa(&hpa);
    }
}

/// Converts an HPA to every version and back. An HPA that could be decoded need not be valid for this.
fn check_conversions(mut hpa: Versioned) {
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
    render_hpa(&hpa);
}

fn render_hpa(hpa: &HorizontalPodAutoscaler) {
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
