//! Registers a server on this machine with the API server's aggregation layer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::encoding::quoted;

/// A version of an API group that a server on this machine serves.
#[derive(Debug, Clone)]
pub struct Aggregated {
    /// The API group, such as `metrics.k8s.io`.
    pub group: String,
    /// The version of the API group, such as `v1beta1`.
    pub version: String,
    /// The namespace of the Service; it must exist.
    pub namespace: String,
    /// The name of the Service.
    pub service: String,
    /// The TLS port of the server on `localhost`.
    pub port: u16,
    /// The authority (PEM) behind the server's certificate, which must name [`Aggregated::server_name`]; with `None` the
    /// certificate is not checked.
    pub authority: Option<String>,
}

impl Aggregated {
    /// The server name that the API server expects in the server's certificate.
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }

    /// The name of the APIService.
    pub fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    /// The Service and the APIService, for `kubectl apply -f -`. The Service is of type ExternalName, which leads the API
    /// server to `localhost`.
    pub fn manifest(&self) -> String {
        let trust = match &self.authority {
            Some(authority) => format!("caBundle: {}", STANDARD.encode(authority)),
            None => "insecureSkipTLSVerify: true".to_owned(),
        };
        format!(
            "apiVersion: v1
kind: Service
metadata:
  name: {service}
  namespace: {namespace}
spec:
  type: ExternalName
  externalName: localhost
  ports:
  - port: {port}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: {name}
spec:
  group: {group}
  version: {version}
  groupPriorityMinimum: 100
  versionPriority: 100
  {trust}
  service:
    name: {service}
    namespace: {namespace}
    port: {port}
",
            service = quoted(&self.service),
            namespace = quoted(&self.namespace),
            port = self.port,
            name = quoted(&self.name()),
            group = quoted(&self.group),
            version = quoted(&self.version),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_has_service_and_ca_bundle() {
        let mut api = Aggregated {
            group: "metrics.k8s.io".into(),
            version: "v1beta1".into(),
            namespace: "kube-system".into(),
            service: "metrics".into(),
            port: 8443,
            authority: None,
        };
        assert_eq!(api.server_name(), "metrics.kube-system.svc");
        let text = api.manifest();
        assert!(text.contains("name: \"v1beta1.metrics.k8s.io\"\n"), "{text}");
        assert!(text.contains("externalName: localhost\n  ports:\n  - port: 8443\n"), "{text}");
        assert!(text.contains("insecureSkipTLSVerify: true") && !text.contains("caBundle"), "{text}");
        api.authority = Some("ca".into());
        let text = api.manifest();
        assert!(text.contains("  caBundle: Y2E=\n") && !text.contains("insecure"), "{text}");
    }
}
