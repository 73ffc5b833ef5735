use serde_json::json;

use super::*;
use crate::autoscaling::{Defaults as _, Version, Versioned};

fn event(reason: &str, age: &str, message: &str) -> Event {
    Event {
        type_: "Normal".into(),
        reason: reason.into(),
        age: age.into(),
        from: "horizontal-pod-autoscaler".into(),
        message: message.into(),
    }
}

#[test]
fn v2_layout() {
    let object = json!({
        "metadata": {"name": "web", "namespace": "prod", "labels": {"app": "web"}, "creationTimestamp": "2023-11-14T22:13:20Z"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
            "minReplicas": 2, "maxReplicas": 10, "behavior": {},
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}},
                {"type": "Pods", "pods": {"metric": {"name": "tps"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
                {"type": "Object", "object": {"describedObject": {"kind": "Ingress", "name": "main"}, "metric": {"name": "rps"},
                                              "target": {"type": "Value", "value": "2k"}}},
                {"type": "External", "external": {"metric": {"name": "qlen"}, "target": {"type": "AverageValue", "averageValue": "30"}}},
                {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app",
                                              "target": {"type": "Utilization", "averageUtilization": 60}}},
            ],
        },
        "status": {
            "currentReplicas": 3, "desiredReplicas": 4,
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 12, "averageValue": "120m"}}},
                {"type": ""}, {"type": ""},
                {"type": "Object", "object": {"current": {"value": "1500"}}},
            ],
            "conditions": [{"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale",
                            "message": "recommended size matches current size"}],
        },
    });
    let mut object = Versioned::decode_as(&object, Version::V2).unwrap();
    object.set_defaults();
    let Versioned::V2(object) = object else { panic!("not v2") };
    let expected = r#"
Name:                                                                     web
Namespace:                                                                prod
Labels:                                                                   app=web
Annotations:                                                              <none>
CreationTimestamp:                                                        Tue, 14 Nov 2023 22:13:20 +0000
Reference:                                                                Deployment/web
Metrics:                                                                  ( current / target )
  resource cpu on pods  (as a percentage of request):                     12% (120m) / 80%
  resource memory on pods:                                                <unknown> / 100Mi
  "tps" on pods:                                                          <unknown> / 10
  "rps" on Ingress/main (target value):                                   1500 / 2k
  "qlen" (target average value):                                          <unknown> / 30
  resource cpu of container "app" on pods  (as a percentage of request):  <unknown> / 60%
Min replicas:                                                             2
Max replicas:                                                             10
Behavior:
  Scale Up:
    Stabilization Window: 0 seconds
    Select Policy: Max
    Policies:
      - Type: Pods     Value: 4    Period: 15 seconds
      - Type: Percent  Value: 100  Period: 15 seconds
  Scale Down:
    Select Policy: Max
    Policies:
      - Type: Percent  Value: 100  Period: 15 seconds
Deployment pods:       3 current / 4 desired
Conditions:
  Type         Status  Reason            Message
  ----         ------  ------            -------
  AbleToScale  True    ReadyForNewScale  recommended size matches current size
Events:        <none>
"#;
    assert_eq!(describe_v2(&object, Some(&[])), expected.trim_start());
    assert!(!describe_v2(&object, None).contains("Events:"));
}

#[test]
fn v1_layout_with_annotations_and_events() {
    let object = json!({
        "metadata": {"name": "web", "namespace": "prod", "annotations": {
            "a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}", "two": "lines\nhere\n", "long": "x".repeat(200),
        }},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 10, "targetCPUUtilizationPercentage": 50},
        "status": {"currentReplicas": 3, "desiredReplicas": 4},
    });
    let Ok(Versioned::V1(object)) = Versioned::decode_as(&object, Version::V1) else { panic!("not v1") };
    let events = [
        event("SuccessfulRescale", "5m (x3 over 20m)", "New size: 4; reason: All metrics below target\n"),
        event("X", "1s", "y"),
    ];
    let expected = format!(
        r"
Name:                     web
Namespace:                prod
Labels:                   <none>
Annotations:              a: b
                          long:
                            {}...
                          two:
                            lines
                            here
CreationTimestamp:        Mon, 01 Jan 0001 00:00:00 +0000
Reference:                Deployment/web
Target CPU utilization:   50%
Current CPU utilization:  <unknown>%
Min replicas:             <unset>
Max replicas:             10
Deployment pods:          3 current / 4 desired
Events:
  Type    Reason             Age               From                       Message
  ----    ------             ----              ----                       -------
  Normal  SuccessfulRescale  5m (x3 over 20m)  horizontal-pod-autoscaler  New size: 4; reason: All metrics below target
  Normal  X                  1s                horizontal-pod-autoscaler  y
",
        "x".repeat(138)
    );
    assert_eq!(describe_v1(&object, Some(&events)), expected.trim_start());
}
