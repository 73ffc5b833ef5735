//! KEDA's own metrics adapter queries our operator, on a real cluster of its own: an API server has one server of external
//! metrics at a time.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testbed::harness::{Cluster, Failure, REAL};
use testbed::keda::{AdapterOptions, KedaAdapter, SERVER_NAME, prepare};
use testbed::program::{Program, TempFolder};
use testbed::{ControlPlane, Options};

use crate::env::{SourceResponse, Sources, deployment, free_port, program, send, until};

const KEDA_NAMESPACE: &str = "keda";
const OBJECT: &str = "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects";
const METRICS: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default";

/// Our operator with certificates of the cluster's authority, as a pod would have them mounted.
async fn operator(plane: &ControlPlane, service: u16) -> Program {
    let access = plane.access();
    let (temp_folder, port, health) = (TempFolder::new().unwrap(), free_port(), free_port());
    let identity = access.authority().server(&[SERVER_NAME, "localhost"]).unwrap();
    temp_folder.write("ca.crt", access.authority().certificate()).unwrap();
    temp_folder.write("tls.crt", &identity.certificate).unwrap();
    temp_folder.write("tls.key", &identity.key).unwrap();
    let kubeconfig = temp_folder.write("kubeconfig", &access.kubeconfig_for(access.admin())).unwrap();
    let arguments = vec![
        "operator".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--cert-dir={}", temp_folder.root().display()),
        format!("--secure-port={port}"),
        format!("--metrics-service-bind-address=127.0.0.1:{service}"),
        format!("--health-probe-bind-address=127.0.0.1:{health}"),
        "--enable-apiservice-patching=false".to_owned(),
        "--enable-webhook-patching=false".to_owned(),
        "--allow-source-cidr=127.0.0.0/8,::1".to_owned(),
        // Every query goes to the source.
        "--sample-age=0s".to_owned(),
    ];
    let home = [("POD_NAMESPACE", KEDA_NAMESPACE)];
    let mut started = Program::start_with("plimsoll", program(), &arguments, &home, temp_folder).unwrap();
    let ready = async || tokio::net::TcpStream::connect(("127.0.0.1", service)).await.is_ok();
    started.until(Duration::from_mins(1), ready).await.unwrap();
    started
}

#[test]
#[ignore = "builds KEDA, which takes nine minutes: make differential-keda"]
fn keda_s_own_adapter_asks_us() -> Result<(), Failure> {
    let plane = match ControlPlane::start(&Options::default()) {
        Ok(plane) => plane,
        Err(error) if error.is_out_of_reach() => return Ok(()),
        Err(error) => panic!("{error}"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let access = plane.access();
        prepare(access, KEDA_NAMESPACE).await.unwrap();
        let cluster = Cluster::reached(REAL, &access.kubeconfig_for(access.admin())).await?;
        let client = &cluster.client;
        let service = free_port();
        let operator = operator(&plane, service).await;
        let sources = Sources::start().await;
        sources.set_response("default", "letters", SourceResponse::Value(25));
        let metadata = json!({"scalerAddress": sources.scaler, "source": "letters"});
        let deployment = deployment("web", 1);
        let object = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"},
            "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "external", "metadata": metadata}]}
        });
        for (path, body) in [("/apis/apps/v1/namespaces/default/deployments", &deployment), (OBJECT, &object)] {
            let (code, response) = send(client, Method::POST, path, Some(body)).await;
            assert_eq!(code, 201, "{response}");
        }
        let options = AdapterOptions {
            namespace: None,
            own_namespace: KEDA_NAMESPACE.to_owned(),
            metrics_service: format!("127.0.0.1:{service}"),
            server_name: SERVER_NAME.to_owned(),
            requests: None,
        };
        let adapter = KedaAdapter::start(access, &options).await.unwrap();
        let send_request = async |metric: &str, object: &str| {
            let path = format!("{METRICS}/{metric}?labelSelector=scaledobject.keda.sh%2Fname%3D{object}");
            send(client, Method::GET, &path, None).await
        };
        until("the first value", async || {
            let (code, response) = send_request("s0-letters", "web").await;
            if code == 200 { Ok(()) } else { Err((response, operator.log(), adapter.log())) }
        })
        .await;
        for value in [25, 0, 70] {
            sources.set_response("default", "letters", SourceResponse::Value(value));
            let (code, mut response) = send_request("s0-letters", "web").await;
            assert_eq!(code, 200, "{response}");
            let item = response["items"][0].take();
            assert!(item["timestamp"].is_string(), "{item}");
            assert_eq!(
                (&item["metricName"], &item["value"], &item["metricLabels"]),
                (&json!("s0-letters"), &json!(value.to_string()), &Value::Null)
            );
        }
        // The error has KEDA's text, with our reason in it.
        sources.set_response("default", "letters", SourceResponse::Fails("the post is closed"));
        let (code, response) = send_request("s0-letters", "web").await;
        let message = response["message"].as_str().unwrap().to_owned();
        assert_eq!(code, 500, "{response}");
        assert!(message.contains("rpc error: code = Unknown desc = error when getting metric values"), "{response}");
        let (code, response) = send_request("s0-letters", "nobody").await;
        assert!(code == 500 && response["message"].as_str().unwrap().contains("nobody"), "{response}");
        Ok(())
    })
}
