//! Autoscalers of every kind, as the API server would admit them.

use api::autoscaling::{FeatureGates, v2};
use api::manifest::{self, Manifest};
use api::plimsoll::Autoscaler;
use api::yaml::{Diagnostic, Document};
use engine::{ControllerConfig, Spec};

use crate::time::Millis;

/// An autoscaler as it was written, with defaults.
#[derive(Clone, Debug)]
pub enum AutoscalerObject {
    /// A HorizontalPodAutoscaler, in version v2 whatever it was written in.
    Hpa(Box<v2::HorizontalPodAutoscaler>),
    /// An Autoscaler of our own.
    Autoscaler(Box<Autoscaler>),
}

/// An autoscaler that was read.
pub(super) struct Declared {
    pub(super) object: AutoscalerObject,
    pub(super) spec: Spec,
    pub(super) period: Option<Millis>,
    pub(super) dry_run: bool,
}

impl AutoscalerObject {
    /// Short name: `hpa/php-apache`.
    pub fn short_name(&self) -> String {
        match self {
            Self::Hpa(hpa) => format!("hpa/{}", hpa.metadata.name),
            Self::Autoscaler(autoscaler) => format!("autoscaler/{}", autoscaler.metadata.name),
        }
    }
}

/// Reads an autoscaler.
pub(super) fn read(document: &Document, config: &ControllerConfig) -> Result<Declared, Vec<Diagnostic>> {
    let gates = FeatureGates::with(config.kubernetes, &config.gates);
    match Manifest::read(document)? {
        Manifest::Hpa(versioned) => {
            let hpa = manifest::admit_hpa(document, *versioned, gates)?;
            Ok(Declared {
                spec: api::convert::spec_of_hpa(&hpa),
                object: AutoscalerObject::Hpa(Box::new(hpa)),
                period: None,
                dry_run: false,
            })
        }
        Manifest::Autoscaler(written) => Ok(own(manifest::admit_autoscaler(document, *written)?)),
        Manifest::Proposal(written) => Ok(own(manifest::admit_proposal(document, *written)?)),
        Manifest::Other { api_version, kind } => {
            Err(vec![document.problem("apiVersion", format!("there is no {kind} in {api_version}"))])
        }
    }
}

/// Reads an Autoscaler with its period and dry-run mode.
fn own(autoscaler: Autoscaler) -> Declared {
    Declared {
        spec: api::convert::spec_of_autoscaler(&autoscaler),
        period: autoscaler.spec.sync_period_seconds.map(|seconds| Millis::from_secs(i64::from(seconds))),
        dry_run: autoscaler.spec.dry_run,
        object: AutoscalerObject::Autoscaler(Box::new(autoscaler)),
    }
}
