//! An autoscaler in any of its versions.

use serde_json::Value;

use super::convert::{self, ConvertError};
use super::defaults::Defaults;
use super::{KIND, v1, v2, v2beta1, v2beta2};
use crate::decode::{self, DecodeError, Keys};
use crate::gotext;

/// The versions of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `autoscaling/v1`
    V1,
    /// `autoscaling/v2`
    V2,
    /// `autoscaling/v2beta1`, no longer served by Kubernetes.
    V2beta1,
    /// `autoscaling/v2beta2`, no longer served by Kubernetes.
    V2beta2,
}

impl Version {
    /// The version an `apiVersion` names.
    pub fn from_api_version(api_version: &str) -> Option<Self> {
        [Self::V1, Self::V2, Self::V2beta1, Self::V2beta2]
            .into_iter()
            .find(|version| version.api_version() == api_version)
    }

    /// Group and version.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => v1::API_VERSION,
            Self::V2 => v2::API_VERSION,
            Self::V2beta1 => v2beta1::API_VERSION,
            Self::V2beta2 => v2beta2::API_VERSION,
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::V2beta1 => "v2beta1",
            Self::V2beta2 => "v2beta2",
        }
    }
}

/// An autoscaler in one of the versions.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Versioned {
    /// `autoscaling/v1`
    V1(v1::HorizontalPodAutoscaler),
    /// `autoscaling/v2`
    V2(v2::HorizontalPodAutoscaler),
    /// `autoscaling/v2beta1`
    V2beta1(v2beta1::HorizontalPodAutoscaler),
    /// `autoscaling/v2beta2`
    V2beta2(v2beta2::HorizontalPodAutoscaler),
}

impl Versioned {
    /// Reads an object in the version it names, as the API server does but without defaults.
    pub fn decode(value: &Value) -> Result<Self, DecodeError> {
        let (api_version, kind) = decode::kind_of(value)?;
        if kind.is_empty() {
            return Err(DecodeError::new(format!("Object 'Kind' is missing in '{value}'")));
        }
        if api_version.is_empty() {
            return Err(DecodeError::new(format!("Object 'apiVersion' is missing in '{value}'")));
        }
        match Version::from_api_version(&api_version).filter(|_| kind == KIND) {
            Some(version) => Self::decode_as(value, version),
            None => Err(DecodeError::new(format!(
                "no kind {} is registered for version {}",
                gotext::quote(&kind),
                gotext::quote(&api_version)
            ))),
        }
    }

    /// Reads an object as the given version, whatever it names.
    pub fn decode_as(value: &Value, version: Version) -> Result<Self, DecodeError> {
        let package = version.package();
        Ok(match version {
            Version::V1 => Self::V1(decode::from_value(value, package, Keys::Exact)?),
            Version::V2 => Self::V2(decode::from_value(value, package, Keys::Exact)?),
            Version::V2beta1 => Self::V2beta1(decode::from_value(value, package, Keys::Exact)?),
            Version::V2beta2 => Self::V2beta2(decode::from_value(value, package, Keys::Exact)?),
        })
    }

    /// The version it is in.
    pub fn version(&self) -> Version {
        match self {
            Self::V1(_) => Version::V1,
            Self::V2(_) => Version::V2,
            Self::V2beta1(_) => Version::V2beta1,
            Self::V2beta2(_) => Version::V2beta2,
        }
    }

    /// The object as v2, as it would be stored.
    pub fn into_v2(self) -> Result<v2::HorizontalPodAutoscaler, ConvertError> {
        Ok(match self {
            Self::V1(object) => convert::v1_to_v2(object),
            Self::V2(object) => convert::v2_to_v2(object),
            Self::V2beta1(object) => convert::v2beta1_to_v2(object),
            Self::V2beta2(object) => convert::v2beta2_to_v2(object)?,
        })
    }

    /// A v2 object as it is served in the given version.
    pub fn from_v2(object: v2::HorizontalPodAutoscaler, version: Version) -> Self {
        match version {
            Version::V1 => Self::V1(convert::v2_to_v1(object)),
            Version::V2 => Self::V2(convert::v2_to_v2(object)),
            Version::V2beta1 => Self::V2beta1(convert::v2_to_v2beta1(object)),
            Version::V2beta2 => Self::V2beta2(convert::v2_to_v2beta2(object)),
        }
    }
}

impl Defaults for Versioned {
    fn set_defaults(&mut self) {
        match self {
            Self::V1(object) => object.set_defaults(),
            Self::V2(object) => object.set_defaults(),
            Self::V2beta1(object) => object.set_defaults(),
            Self::V2beta2(object) => object.set_defaults(),
        }
    }
}
