//! Metric specs of the resource scalers.
use futures::FutureExt as _;
use serde_json::json;

use crate::test_support::{build, read, trigger};
use crate::{ScalerError, Trigger};

fn with(metric_type: &str, metadata: &[(&str, &str)]) -> Trigger {
    Trigger { metric_type: metric_type.to_owned(), ..trigger("memory", metadata) }
}

fn spec(trigger: &Trigger) -> Result<serde_json::Value, ScalerError> {
    let scaler = build(trigger)?;
    // No request is sent, so the future is ready at once.
    let specs = scaler.specs().now_or_never().unwrap()?;
    Ok(serde_json::to_value(specs).unwrap())
}

#[test]
fn utilization_target() {
    let wanted = json!([{"type": "Resource", "resource": {
        "name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}}]);
    assert_eq!(spec(&with("Utilization", &[("value", " 60 ")])), Ok(wanted));
}

#[test]
fn container_resource_target() {
    let wanted = json!([{"type": "ContainerResource", "containerResource": {
        "name": "memory", "container": "web", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}]);
    assert_eq!(spec(&with("AverageValue", &[("value", "1Gi"), ("containerName", "web")])), Ok(wanted));
}

#[test]
fn invalid_targets_are_errors() {
    for (metric_type, value, text) in [
        ("Utilization", "60%", "must be a whole percentage"),
        ("Utilization", "2147483648", "must be a whole percentage"),
        ("AverageValue", "12Xi", "must be a quantity"),
        ("Value", "5", "unknown metric type: Value, allowed values are 'Utilization' or 'AverageValue'"),
        ("", "5", "unknown metric type: , allowed"),
    ] {
        let error = spec(&with(metric_type, &[("value", value)])).unwrap_err().message;
        assert!(error.starts_with("error parsing memory metadata: ") && error.contains(text), "{error}");
    }
    let error = spec(&with("Utilization", &[("value", "5"), ("type", "Utilization")])).unwrap_err().message;
    assert!(
        error.starts_with("error parsing memory metadata: scaler memory info: The 'type' setting"),
        "{error}"
    );
}

#[tokio::test]
async fn resource_scaler_has_no_values_and_is_active() {
    let read = read(&with("Utilization", &[("value", "60")])).await.unwrap();
    assert!(read.active && read.values.is_empty());
}
