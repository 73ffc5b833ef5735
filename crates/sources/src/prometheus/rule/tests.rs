#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::prometheus::mapper::{GroupResource, KnownResource};

pub(in crate::prometheus) fn mapper() -> RestMapper {
    let known = |group: &str, plural: &str, singular: &str, kind: &str, namespaced: bool| KnownResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        singular: singular.to_owned(),
        kind: kind.to_owned(),
        namespaced,
    };
    RestMapper::new(vec![
        known("", "namespaces", "namespace", "Namespace", false),
        known("", "nodes", "node", "Node", false),
        known("", "pods", "pod", "Pod", true),
        known("", "services", "service", "Service", true),
        known("apps", "deployments", "deployment", "Deployment", true),
        known("batch", "jobs", "job", "Job", true),
        known("networking.k8s.io", "ingresses", "ingress", "Ingress", true),
        known("example.com", "widgets", "widget", "Widget", false),
    ])
}

fn compile(text: &str) -> Result<Rules, ConfigError> {
    Rules::compile(&AdapterConfig::parse(text).unwrap(), &mapper(), Compat::Better)
}

fn labels(text: &str) -> ResourceLabels {
    compile(&format!("rules: [{{resources: {text}}}]")).unwrap().custom[0].labels.clone()
}

#[test]
fn labels_map_to_resources_and_back() {
    let labels =
        labels("{template: 'kube_<<.Group>>_<<.Resource>>', overrides: {ns: {resource: Namespace}}}");
    let (mapper, found) = (mapper(), |label: &str| {
        let mapper = mapper();
        labels.resource_of(label, &mapper).map(|found| found.group_resource().to_string())
    });
    assert_eq!(found("ns").as_deref(), Some("namespaces"));
    assert_eq!(found("kube_apps_deployment").as_deref(), Some("deployments.apps"));
    assert_eq!(found("kube_apps_deployments").as_deref(), Some("deployments.apps"));
    assert_eq!(found("kube__pod"), None, "a group must be there");
    assert_eq!(found("kube_networking_k8s_io_ingress"), None, "dots do not come back");
    let label = |text: &str| labels.label_of(&GroupResource::parse(text), &mapper);
    assert_eq!(label("namespaces").unwrap(), "ns");
    assert_eq!(label("ingresses.networking.k8s.io").unwrap(), "kube_networking_k8s_io_ingress");
}

#[test]
fn no_mapping_means_no_label() {
    let why =
        labels("{overrides: {p: {resource: pod}}}").label_of(&GroupResource::parse("namespaces"), &mapper());
    assert_eq!(
        why.unwrap_err().to_string(),
        "unable to convert resource namespaces into label: no generic resource label form specified for this metric"
    );
}

#[test]
fn errors_have_section_and_rule() {
    let error = compile("rules: [{}, {seriesQuery: up, seriesFilters: [{}]}]").unwrap_err();
    assert_eq!((error.stage, error.rule), (ConfigSection::Rules, Some(1)));
    assert_eq!(
        error.message,
        "unable to generate series name filter associated with series query \"up\": must have either an `is` or \
         `isNot` expression in a filter"
    );
    let error = compile("resourceRules: {memory: {nodeQuery: '<<'}}").unwrap_err();
    assert!(
        error.message.starts_with("unable to construct querier for memory metrics: unable to construct node")
    );
}

#[test]
fn selectors_are_distinct() {
    let rules = compile(
        "rules: [{seriesQuery: a}, {seriesQuery: b}, {seriesQuery: a}]\nexternalRules: [{seriesQuery: b}]",
    );
    let rules = rules.unwrap();
    let texts = |list: Vec<Arc<str>>| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(rules.custom_selectors()), ["a", "b"]);
    assert_eq!(texts(rules.external_selectors()), ["b"]);
    assert_eq!(texts(rules.selectors()), ["a", "b"]);
}

#[test]
fn name_matches_also_filter() {
    let rules = compile("rules: [{seriesFilters: [{isNot: ^x}], name: {matches: '^(.*)_total$'}}]").unwrap();
    let metric = |series: &str| rules.custom[0].metric(series);
    assert_eq!(metric("http_total").as_deref(), Some("http"));
    assert_eq!(metric("x_total"), None);
    assert_eq!(metric("http"), None);
}
