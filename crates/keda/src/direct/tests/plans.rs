//! Plans and their pod metrics.

use super::*;

#[test]
fn plan_equals_spec_of_generated_hpa() {
    let mut object = object(0, None);
    let behavior = HorizontalPodAutoscalerBehavior {
        scale_up: Some(HPAScalingRules {
            stabilization_window_seconds: Some(30),
            ..HPAScalingRules::default()
        }),
        ..HorizontalPodAutoscalerBehavior::default()
    };
    let config = HorizontalPodAutoscalerConfig { behavior: Some(behavior), name: String::new() };
    object.spec.advanced = Some(Box::new(AdvancedConfig {
        horizontal_pod_autoscaler_config: Some(config),
        ..AdvancedConfig::default()
    }));
    let found = plan(&object, &[vec![cpu()], vec![redis()]], Compat::Better).unwrap();
    let spec = &found.spec;
    assert_eq!((spec.name.as_str(), spec.min.get(), spec.max.get()), ("worker", 1, 20));
    assert_eq!(found.status.external_metric_names, [METRIC]);
    let targets: Vec<EngineTarget> = spec.metrics.iter().map(|metric| metric.target).collect();
    assert_eq!(targets, [EngineTarget::AverageValue(10_000.into()), EngineTarget::Utilization(70)]);
    let up = &spec.behavior.as_ref().unwrap().up;
    assert_eq!(up.window, Some(SignedDuration::from_secs(30)));
    assert_eq!(up.policies.len(), 2, "defaults are filled in");
}

#[test]
fn a_formula_is_one_metric() {
    let mut object = object(0, None);
    let scaling_modifiers = ScalingModifiers {
        formula: "a + 1".into(),
        target: "2.5".into(),
        metric_type: "Value".into(),
        ..ScalingModifiers::default()
    };
    object.spec.advanced = Some(Box::new(AdvancedConfig { scaling_modifiers, ..AdvancedConfig::default() }));
    let spec = plan(&object, &[vec![redis()], vec![cpu()]], Compat::Better).unwrap().spec;
    let names: Vec<&str> = spec
        .metrics
        .iter()
        .map(|metric| match &metric.source {
            MetricSource::External(id) => id.name.as_str(),
            MetricSource::Resource { name, .. } => name.as_str(),
            _ => "",
        })
        .collect();
    assert_eq!(names, ["cpu", "composite-metric"]);
    assert_eq!(spec.metrics.last().map(|metric| metric.target), Some(EngineTarget::Value(2500.into())));
    let samples = external_samples(&spec, |name| {
        (name == "composite-metric").then(|| Ok(vec!["1500m".parse().unwrap(), "1".parse().unwrap()]))
    });
    assert_eq!(samples, [None, Some(Ok(MetricSamples::Totals(vec![1500.into(), 1000.into()])))]);
    let missing = external_samples(&spec, |_| None);
    assert_eq!(missing.last(), Some(&Some(Err("no values of metric composite-metric".into()))));
    let broken = external_samples(&spec, |_| Some(Err("refused".into())));
    assert_eq!(broken.last(), Some(&Some(Err("refused".into()))));
}

#[test]
fn pods_are_needed_only_if_metrics_decide() {
    let object = object(0, None);
    let by = active();
    assert!(!needs_pods(&input(&object, &[], None), 0, Compat::Better));
    assert!(!needs_pods(&input(&object, &by, None), 0, Compat::Better));
    assert!(!needs_pods(&input(&object, &[], None), 7, Compat::Better), "it goes to rest");
    assert!(needs_pods(&input(&object, &by, None), 7, Compat::Better));
}
