//! The scale of any object.

use engine::act::WriteError;
use engine::{Scale, ScaleFailure};
use kube::Client;

use crate::discovery::{Discovery, Resource};

/// A scale as it was read, ready to be written back.
#[derive(Clone, Debug)]
pub struct ScaleObject {
    /// What the engine looks at; the selector normalised as client-go does.
    pub scale: Scale,
    /// The resource it belongs to.
    pub resource: Resource,
    /// The version of the object.
    pub resource_version: String,
    raw: serde_json::Value,
}

/// Reads and writes scales.
#[derive(Clone)]
pub struct Scales {
    client: Client,
    discovery: Discovery,
}

impl Scales {
    /// With a client and what it knows.
    pub fn new(client: Client, discovery: Discovery) -> Self {
        Self { client, discovery }
    }

    /// Finds the target and reads its scale (spec 3.2, C.1).
    pub async fn get(
        &self,
        namespace: &str,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Result<ScaleObject, ScaleFailure> {
        let _ = (&self.client, &self.discovery, namespace, api_version, kind, name);
        todo!()
    }

    /// Reads a scale again.
    pub async fn refetch(&self, namespace: &str, name: &str, held: &ScaleObject) -> Result<ScaleObject, String> {
        let _ = (namespace, name, &held.raw);
        todo!()
    }

    /// Writes a count to the scale that is held (spec C.2).
    pub async fn put(
        &self,
        namespace: &str,
        name: &str,
        held: &ScaleObject,
        replicas: i32,
    ) -> Result<ScaleObject, WriteError> {
        let _ = (namespace, name, held, replicas);
        todo!()
    }
}
