#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use api::provider::Compat;

use super::*;
use crate::prometheus::config::AdapterConfig;
use crate::prometheus::registry::Series;
use crate::prometheus::rule::tests::mapper;

const CONFIG: &str = "
rules:
- seriesQuery: s
  resources: {template: <<.Resource>>}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: s
  name: {as: free}
  resources: {namespaced: false}
  metricsQuery: max(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
- seriesQuery: s
  metricsQuery: x
resourceRules:
  cpu:
    containerQuery: c{<<.LabelMatchers>>} by (<<.GroupBy>>) <<.GroupBySlice>>
    nodeQuery: n{<<.LabelMatchers>>} by (<<.GroupBy>>)
    resources: {template: <<.Resource>>}
    containerLabel: container
";

fn fixture() -> (Rules, Registry) {
    let rules = Rules::compile(&AdapterConfig::parse(CONFIG).unwrap(), &mapper(), Compat::Better).unwrap();
    let labels: Vec<Arc<str>> = ["namespace", "pod", "node", "deployment"].map(Arc::from).into();
    let found = [("s".into(), vec![Series { name: "m".into(), labels }])];
    let registry = Registry::build(&rules, &mapper(), &found);
    (rules, registry)
}

fn query_text(
    resource: &str,
    namespace: Option<&str>,
    objects: ObjectFilter<'_>,
    selector: &str,
) -> Result<String, QueryError> {
    let (rules, registry) = fixture();
    let series = &Selector::parse(selector).unwrap();
    let args = CustomQueryArgs { resource, namespace, objects, metric: "m", series };
    custom(&rules, &registry, &mapper(), &args).map(|(query, _)| query.text)
}

#[test]
fn custom_queries() {
    for (resource, namespace, names, selector, expected) in [
        ("PODS", Some("n"), ObjectFilter::Named(&["a"]), "", "sum(m{namespace=\"n\",pod=\"a\"}) by (pod)"),
        (
            "pod",
            Some("n"),
            ObjectFilter::Named(&["a", "b\"c"]),
            "v in (2,1),!x,y",
            "sum(m{v=~\"1|2\",x=\"\",y!=\"\",namespace=\"n\",pod=~\"a|b\\\"c\"}) by (pod)",
        ),
        (
            "deployment.apps",
            Some("n"),
            ObjectFilter::Any,
            "",
            "sum(m{namespace=\"n\",deployment!=\"\"}) by (deployment)",
        ),
        ("nodes", None, ObjectFilter::Named(&["a"]), "k!=v", "sum(m{k!=\"v\",node=\"a\"}) by (node)"),
        ("namespaces", None, ObjectFilter::Named(&["a"]), "", "sum(m{namespace=\"a\"}) by (namespace)"),
    ] {
        assert_eq!(query_text(resource, namespace, names, selector).as_deref(), Ok(expected));
    }
}

#[test]
fn custom_queries_that_fail() {
    let one = ObjectFilter::Named(&["a"]);
    assert_eq!(query_text("pods", None, one, ""), Err(QueryError::NoMetric), "pods live in namespaces");
    assert_eq!(query_text("services", Some("n"), one, ""), Err(QueryError::NoMetric));
    assert_eq!(query_text("pods", Some("n"), ObjectFilter::Named(&[]), ""), Err(QueryError::NoObjects));
    assert!(matches!(query_text("foos", Some("n"), one, ""), Err(QueryError::NoResource(_))));
    let unsupported = QueryError::Build(QueryBuildError::UnsupportedOperator);
    assert_eq!(query_text("pods", Some("n"), one, "a>1"), Err(unsupported));
}

#[test]
fn external_queries() {
    let (rules, registry) = fixture();
    let query_text = |metric: &str, selector: &str| {
        external(&rules, &registry, &mapper(), "n", metric, &Selector::parse(selector).unwrap())
    };
    assert_eq!(query_text("free", "a=b").as_deref(), Ok("max(m{a=\"b\"}) by ()"));
    assert_eq!(query_text("nope", ""), Err(QueryError::NoMetric));
    assert!(
        query_text("m", "")
            .unwrap_err()
            .to_string()
            .contains("unable to convert resource namespaces into label")
    );
}

#[test]
fn resource_queries() {
    let (rules, _) = fixture();
    let cpu = &rules.resource().unwrap().cpu;
    let query = cpu.containers_query(&mapper(), "n", &ObjectFilter::Named(&["a", "b"])).unwrap();
    assert_eq!(query.text, "c{namespace=\"n\",pod=~\"a|b\"} by (pod,container) [pod container]");
    let query = cpu.nodes_query(&mapper(), &ObjectFilter::Named(&["a"])).unwrap();
    assert_eq!((&*query.text, &*query.label), ("n{node=\"a\"} by (node)", "node"));
}

proptest::proptest! {
    #[test]
    fn quotes_are_balanced_for_any_object_name(names in proptest::collection::vec(".*", 1..4), namespace in ".*") {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = query_text("pods", Some(&namespace), ObjectFilter::Named(&names), "").unwrap();
        proptest::prop_assert!(crate::prometheus::lint::promql::check(&text).is_ok(), "{text}");
    }
}
