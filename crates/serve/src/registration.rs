//! The Service and the APIServices that register this server with the aggregation layer.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The Service in front of this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRef {
    /// Namespace of the Service; it must exist.
    pub namespace: String,
    /// Name of the Service.
    pub service: String,
    /// The backend of the Service.
    pub behind: ServiceBackend,
}

/// The backend of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceBackend {
    /// Pods with these labels and this port; the Service has port 443.
    Pods(BTreeMap<String, String>, u16),
    /// The machine on which the API server runs, with this port.
    ThisMachine(u16),
}

impl ServiceRef {
    /// The DNS name that the API server verifies in the server's certificate.
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }

    pub(crate) fn port(&self) -> u16 {
        match self.behind {
            ServiceBackend::Pods(..) => 443,
            ServiceBackend::ThisMachine(port) => port,
        }
    }

    fn service(&self) -> Value {
        let spec = match &self.behind {
            ServiceBackend::Pods(labels, port) => json!({
                "selector": labels,
                "ports": [{"name": "https", "port": 443, "targetPort": port, "protocol": "TCP", "appProtocol": "https"}],
            }),
            ServiceBackend::ThisMachine(port) => {
                json!({"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]})
            }
        };
        let metadata = json!({"name": self.service, "namespace": self.namespace});
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    }

    fn api_service(&self, group: &str, version: &str, priority: usize, authority: Option<&str>) -> Value {
        let mut spec = json!({
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": priority,
            "service": {"namespace": self.namespace, "name": self.service, "port": self.port()},
        });
        if let Some(spec) = spec.as_object_mut() {
            let (key, value) = match authority {
                Some(pem) => ("caBundle", json!(STANDARD.encode(pem))),
                None => ("insecureSkipTLSVerify", json!(true)),
            };
            spec.insert(key.to_owned(), value);
        }
        let metadata = json!({"name": format!("{version}.{group}")});
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec})
    }

    /// The Service, then the APIServices of these group versions, in descending priority. Without a CA
    /// (PEM) the API server skips verification.
    pub fn objects(&self, versions: &[(String, String)], authority: Option<&str>) -> Vec<Value> {
        let apis = versions.iter().enumerate().map(|(index, (group, version))| {
            self.api_service(group, version, 100_usize.saturating_sub(index).max(1), authority)
        });
        std::iter::once(self.service()).chain(apis).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_service_and_the_ca_bundle() {
        let behind = ServiceBackend::Pods([("app".to_owned(), "plimsoll".to_owned())].into(), 10257);
        let place = ServiceRef { namespace: "ns".into(), service: "ctl".into(), behind };
        assert_eq!(place.server_name(), "ctl.ns.svc");
        let versions = [("g.dev".to_owned(), "v2".to_owned()), ("g.dev".to_owned(), "v1".to_owned())];
        let objects = place.objects(&versions, Some("ca"));
        assert_eq!(objects.len(), 3);
        assert_eq!(objects[0]["spec"]["ports"][0]["targetPort"], 10257);
        assert_eq!(objects[1]["metadata"]["name"], "v2.g.dev");
        assert_eq!(
            (&objects[1]["spec"]["caBundle"], &objects[1]["spec"]["service"]["port"]),
            (&json!("Y2E="), &json!(443))
        );
        assert_eq!(
            (&objects[1]["spec"]["versionPriority"], &objects[2]["spec"]["versionPriority"]),
            (&json!(100), &json!(99))
        );
        let place = ServiceRef { behind: ServiceBackend::ThisMachine(7), ..place };
        let objects = place.objects(&versions[..1], None);
        assert_eq!(
            (&objects[0]["spec"]["externalName"], &objects[1]["spec"]["service"]["port"]),
            (&json!("localhost"), &json!(7))
        );
        assert_eq!(objects[1]["spec"]["insecureSkipTLSVerify"], true);
    }
}
