//! Two replicas: both serve with one certificate in a Secret, which is renewed while they run; both serve
//! external metrics and admission, one leads, and the other takes over when the leader is killed.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use serve::{CertificateBundle, CertificateLifetimes};
use testbed::harness::Failure;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::env::{
    ACCOUNT, Operator, SYSTEM_NAMESPACE, SourceResponse, TestNamespace, deployment, free_port, on_both,
};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

impl TestNamespace {
    /// The Secret of this test's replicas.
    async fn secret(&self) -> Value {
        let (code, response_body) = self.get(&secret_path()).await;
        assert_eq!(code, 200, "{response_body}");
        response_body
    }

    async fn part(&self, name: &str) -> String {
        decoded(&self.secret().await["data"][name])
    }

    /// The response of a replica to an administrator who trusts only the authorities in the Secret, and the certificate it
    /// presented.
    async fn send_request(
        &self,
        port: u16,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value, Vec<u8>), String> {
        let mut roots = RootCertStore::empty();
        let authorities = self.part("ca.crt").await;
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authorities.as_bytes()).flatten());
        let (certificate, key) = (self.own("client-certificate-data"), self.own("client-key-data"));
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).flatten().collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .unwrap();
        let name = ServerName::try_from(format!("{ACCOUNT}.{SYSTEM_NAMESPACE}.svc")).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        let opened = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = opened.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("host", "x");
        let request = request.header("content-type", "application/json").body(Full::new(Bytes::from(body)));
        let response = sender.send_request(request.unwrap()).await.map_err(|error| error.to_string())?;
        let code = response.status().as_u16();
        let text = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        let response_body =
            serde_json::from_slice(&text).unwrap_or_else(|_| json!(String::from_utf8_lossy(&text)));
        Ok((code, response_body, shown))
    }

    /// A field of the administrator's kubeconfig.
    fn own(&self, name: &str) -> String {
        let mut lines = self.env.cluster.kubeconfig.lines();
        let found = lines.find_map(|line| line.trim().strip_prefix(&format!("{name}: "))).unwrap();
        String::from_utf8(STANDARD.decode(found.trim()).unwrap()).unwrap()
    }

    /// The value that a replica serves, and the certificate it presented.
    async fn value(&self, port: u16) -> Result<(Value, Vec<u8>), String> {
        let path = format!(
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/s0-web?labelSelector=scaledobject.keda.sh%2Fname%3Dweb",
            self.namespace
        );
        let (code, response_body, shown) = self.send_request(port, &path, None).await?;
        if code == 200 {
            Ok((response_body["items"][0]["value"].clone(), shown))
        } else {
            Err(response_body.to_string())
        }
    }

    /// Whether a replica exports that it leads.
    async fn leads(&self, port: u16) -> bool {
        let page = self.send_request(port, "/metrics", None).await.unwrap().1;
        page.as_str().unwrap().contains("leader_election_master_status{name=\"replicas\"} 1")
    }

    /// Waits until both serve this value with the certificate in the Secret.
    async fn until_both(&self, ports: [u16; 2], value: &str) {
        for port in ports {
            self.until("the same from both", async || {
                let (found, shown) = self.value(port).await?;
                let stored = self.part("tls.crt").await;
                let stored = CertificateDer::from_pem_slice(stored.as_bytes()).unwrap();
                if found == value && shown == stored.as_ref() {
                    Ok(())
                } else {
                    Err(format!("{found} of {port}"))
                }
            })
            .await;
        }
    }
}

fn secret_path() -> String {
    format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets/replicas")
}

fn decoded(value: &Value) -> String {
    String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap()
}

/// A configuration that calls no webhook: only its CA bundle matters.
fn configuration(ns: &TestNamespace) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": ns.namespace},
        "webhooks": [{
            "name": "vscaledobject.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Ignore", "objectSelector": {"matchLabels": {"nobody": "has-this"}},
            "clientConfig": {"service": {
                "namespace": SYSTEM_NAMESPACE, "name": ACCOUNT, "port": 443, "path": "/validate-keda-sh-v1alpha1-scaledobject"
            }},
            "rules": [{
                "apiGroups": ["keda.sh"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"],
                "resources": ["scaledobjects"]
            }]
        }]
    })
}

/// An invalid write.
fn review(ns: &TestNamespace) -> Value {
    let mut object = ns.scaled_object("another", &json!({"minReplicaCount": 5, "maxReplicaCount": 2}));
    object["metadata"]["namespace"] = json!(ns.namespace);
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": ns.namespace, "name": "another", "object": object,
            "kind": {"group": "keda.sh", "version": "v1alpha1", "kind": "ScaledObject"},
            "resource": {"group": "keda.sh", "version": "v1alpha1", "resource": "scaledobjects"}
        }
    })
}

async fn replica(ns: &TestNamespace, port: u16) -> Operator {
    let [service, health] = [free_port(), free_port()];
    let flags = [
        "--leader-elect".to_owned(),
        "--leader-election-id=replicas".to_owned(),
        "--enable-cert-rotation".to_owned(),
        "--cert-secret-name=replicas".to_owned(),
        format!("--validating-webhook-name={}", ns.namespace),
        "--enable-apiservice-patching=false".to_owned(),
        format!("--metrics-service-bind-address=127.0.0.1:{service}"),
        format!("--health-probe-bind-address=127.0.0.1:{health}"),
        "--sample-age=0s".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Operator::start_as(ns, &ns.env.cluster.kubeconfig, port, &flags).await
}

#[test]
fn two_replicas_share_a_certificate_and_one_takes_over() -> Result<(), Failure> {
    on_both(async |ns| {
        ns.send(Method::DELETE, &secret_path(), None).await;
        let (code, response_body) = ns.send(Method::POST, CONFIGURATIONS, Some(&configuration(&ns))).await;
        assert_eq!(code, 201, "{response_body}");
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment("web", 0));
        ns.set_response("web", SourceResponse::Value(0));
        kubectl.apply(&ns.scaled_object("web", &json!({})));
        let ports = [free_port(), free_port()];
        let (first, second) = tokio::join!(replica(&ns, ports[0]), replica(&ns, ports[1]));
        ns.until_both(ports, "0").await;
        for port in ports {
            let path = "/validate-keda-sh-v1alpha1-scaledobject";
            let (code, response_body, _) = ns.send_request(port, path, Some(&review(&ns))).await.unwrap();
            assert_eq!(
                (code, &response_body["response"]["allowed"]),
                (200, &json!(false)),
                "{response_body}"
            );
            let page = ns.send_request(port, "/metrics", None).await.unwrap().1;
            let counted = format!(
                "keda_webhook_scaled_object_validation_errors_total{{namespace=\"{}\",action=\"create\",\
                 reason=\"incorrect-replicas\"}} 1",
                ns.namespace
            );
            assert!(page.as_str().unwrap().contains(&counted), "{page}");
        }
        reported(&ns).await;

        // The leader renews a certificate that is due, and both replicas serve with the new one without a restart.
        let names: Vec<String> =
            ["localhost".to_owned(), format!("{ACCOUNT}.{SYSTEM_NAMESPACE}.svc")].to_vec();
        let past = Timestamp::now() - SignedDuration::from_hours(300 * 24);
        let due = CertificateBundle::make(&names, &CertificateLifetimes::default(), past).unwrap();
        let mut secret = ns.secret().await;
        for (part, text) in [
            ("ca.crt", &due.authorities),
            ("ca.key", &due.authority_key),
            ("tls.crt", &due.certificate),
            ("tls.key", &due.key),
        ] {
            secret["data"][part] = json!(STANDARD.encode(text));
        }
        let (code, response_body) = ns.send(Method::PUT, &secret_path(), Some(&secret)).await;
        assert_eq!(code, 200, "{response_body}");
        ns.until("another certificate", async || {
            if ns.part("tls.crt").await == due.certificate { Err(()) } else { Ok(()) }
        })
        .await;
        assert_eq!(ns.part("ca.crt").await, due.authorities, "the authority was still good");
        ns.until_both(ports, "0").await;
        reported(&ns).await;

        let leader = usize::from(!ns.leads(ports[0]).await);
        assert!(ns.leads(ports[leader]).await && !ns.leads(ports[1 - leader]).await);
        let (killed, left) = if leader == 0 { (&first, &second) } else { (&second, &first) };
        killed.kill();
        ns.set_response("web", SourceResponse::Value(7));
        ns.until_replicas("web", 1).await;
        assert!(ns.leads(ports[1 - leader]).await);
        assert_eq!(ns.value(ports[1 - leader]).await.unwrap().0, "7");
        left.check();
        ns.send(Method::DELETE, &format!("{CONFIGURATIONS}/{}", ns.namespace), None).await;
    })
}

/// Waits until the webhook's configuration has the authorities in the Secret.
async fn reported(ns: &TestNamespace) {
    ns.until("the webhook's configuration knows whom to trust", async || {
        let configuration = ns.get(&format!("{CONFIGURATIONS}/{}", ns.namespace)).await.1;
        let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].clone();
        if bundle == ns.secret().await["data"]["ca.crt"] { Ok(()) } else { Err(bundle) }
    })
    .await;
}
