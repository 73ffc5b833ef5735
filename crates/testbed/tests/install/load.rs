//! The php-apache walk-through with real CPU time: a Service in front of a server that uses CPU, and a client that sends requests.

use testbed::node::TOOL_IMAGE;

use crate::cluster::Cluster;

/// The server requests 100m of CPU, and the target of the HPA is 50 percent of that. Each request takes some milliseconds of CPU time.
fn manifests() -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: php-apache}}
spec:
  selector: {{matchLabels: {{run: php-apache}}}}
  template:
    metadata: {{labels: {{run: php-apache}}}}
    spec:
      containers:
      - name: php-apache
        image: {TOOL_IMAGE}
        imagePullPolicy: Never
        args: [serve, ':8080']
        ports: [{{containerPort: 8080}}]
        resources: {{requests: {{cpu: 100m}}, limits: {{cpu: 200m}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: php-apache}}
spec:
  selector: {{run: php-apache}}
  ports: [{{port: 80, targetPort: 8080}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: php-apache}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: php-apache}}
  minReplicas: 1
  maxReplicas: 3
  behavior: {{scaleDown: {{stabilizationWindowSeconds: 15}}}}
  metrics:
  - {{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 50}}}}}}
"
    )
}

/// These nodes have no DNS, so the client gets the address of the Service from the environment variables of its pod, which starts after the
/// Service was created.
fn client() -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: load-generator}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: load
    image: {TOOL_IMAGE}
    imagePullPolicy: Never
    args: [load, 'http://$(PHP_APACHE_SERVICE_HOST)']
    resources: {{limits: {{cpu: 100m}}}}
"
    )
}

/// A workload with an idle container and a sidecar that uses CPU.
fn sidecar() -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: sidecar}}
spec:
  selector: {{matchLabels: {{run: sidecar}}}}
  template:
    metadata: {{labels: {{run: sidecar}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: application
        image: {TOOL_IMAGE}
        imagePullPolicy: Never
        resources: {{requests: {{cpu: 100m}}}}
      - name: proxy
        image: {TOOL_IMAGE}
        imagePullPolicy: Never
        args: [burn, '100']
        resources: {{requests: {{cpu: 10m}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: sidecar}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: sidecar}}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - type: ContainerResource
    containerResource: {{name: cpu, container: application, target: {{type: Utilization, averageUtilization: 50}}}}
"
    )
}

/// The HPA targets only the idle container.
pub(crate) fn of_a_sidecar_is_ignored(cluster: &Cluster) {
    cluster.apply(&sidecar());
    cluster.until("the busy container is measured", || {
        let used = cluster.try_kubectl("top pods --containers --selector run=sidecar --no-headers").ok()?;
        let cpu = used
            .lines()
            .find(|line| line.contains(" proxy "))?
            .split_whitespace()
            .nth(2)?
            .strip_suffix('m')?;
        (cpu.parse::<u32>().ok()? > 10).then_some(())
    });
    cluster.until("the HPA has measured the application", || {
        let hpa = cluster.get("hpa sidecar");
        let current =
            &hpa["status"]["currentMetrics"][0]["containerResource"]["current"]["averageUtilization"];
        let used = current.as_i64()?;
        assert!(used < 50, "{hpa}");
        Some(())
    });
    assert_eq!(cluster.get("deployment sidecar")["spec"]["replicas"], 1);
    cluster.kubectl("delete hpa,deployment sidecar");
}

pub(crate) fn is_followed(cluster: &Cluster) {
    cluster.apply(&manifests());
    let replicas = |wanted: i64| {
        cluster.until(&format!("php-apache has {wanted} replicas"), || {
            let hpa = cluster.get("hpa php-apache");
            let measured =
                hpa["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"].is_i64();
            (measured && hpa["status"]["desiredReplicas"] == wanted).then_some(())
        });
    };
    replicas(1);
    cluster.apply(&client());
    replicas(3);
    cluster.kubectl("delete pod load-generator");
    replicas(1);
    let events = cluster.kubectl("describe hpa php-apache");
    assert!(events.contains("SuccessfulRescale"), "{events}");
    cluster.kubectl("delete hpa,deployment,service php-apache");
}
