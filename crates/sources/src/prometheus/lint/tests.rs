#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use api::provider::Compat;

use super::*;
use crate::prometheus::rule::tests::mapper;

fn found(text: &str) -> Vec<(Severity, String, u32)> {
    lint(text, None)
        .into_iter()
        .map(|f| (f.severity, format!("{}: {}", f.location.key, f.message), f.location.line))
        .collect()
}

fn has(text: &str, severity: Severity, key: &str, part: &str) {
    let findings = lint(text, None);
    let one =
        findings.iter().find(|f| f.severity == severity && f.location.key == key && f.message.contains(part));
    assert!(one.is_some_and(|finding| !finding.remedy.is_empty()), "{key} {part}\n{findings:#?}");
}

const GOOD: &str = r#"
rules:
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
      pod: {resource: pod}
  name:
    matches: "^(.*)_total$"
    as: "${1}_per_second"
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)'
externalRules:
- seriesQuery: 'queue_depth{namespace!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'
resourceRules:
  cpu: &rule
    containerQuery: 'sum by (<<.GroupBy>>) (c{<<.LabelMatchers>>})'
    nodeQuery: 'sum by (<<.GroupBy>>) (n{<<.LabelMatchers>>})'
    resources:
      overrides:
        namespace: {resource: namespace}
        node: {resource: node}
        pod: {resource: pod}
    containerLabel: container
  memory: *rule
  window: 5m
"#;

#[test]
fn valid_file_has_no_findings() {
    assert_eq!(found(GOOD), []);
    assert_eq!(lint(GOOD, Some(&mapper())), []);
}

#[test]
fn finds_each_mistake() {
    use Severity::{Error, Note, Warning};
    let changed = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        GOOD.replacen(from, to, 1)
    };
    for (from, to, severity, key, part) in [
        ("${1}_per_second", "$1_per_second", Warning, "rules[0].name.as", "`$1_per_second` means the group"),
        ("${1}_per_second", "$2", Warning, "rules[0].name.as", "becomes nothing"),
        ("${1}_per_second", "a/$1", Warning, "rules[0].name.as", "slash"),
        ("    as: \"${1}_per_second\"\n", "", Note, "", ""),
        (
            "http_requests_total{namespace!=\"\",pod!=\"\"}",
            "{namespace!=\"\"}",
            Warning,
            "rules[0].seriesQuery",
            "all its series",
        ),
        (
            "http_requests_total{namespace!=\"\",pod!=\"\"}",
            "http_requests_total{namespace",
            Error,
            "rules[0].seriesQuery",
            "never closed",
        ),
        (
            "http_requests_total{namespace!=\"\",pod!=\"\"}",
            "a{b=c}",
            Error,
            "rules[0].seriesQuery",
            "not a matcher",
        ),
        (
            "      pod: {resource: pod}\n",
            "      pod: {resource: pod}\n    namespaced: false\n",
            Warning,
            "rules[0].resources.namespaced",
            "means nothing",
        ),
        (
            "      namespace: {resource: namespace}\n      pod",
            "      pod",
            Error,
            "rules[0].resources.overrides",
            "no label names the namespace",
        ),
        (
            "      pod: {resource: pod}\n",
            "      pod: {resource: pod}\n      pods: {resource: pods}\n",
            Warning,
            "rules[0].resources.overrides[pods]",
            "queries use `pod`",
        ),
        (") by (<<.GroupBy>>)'", ")'", Warning, "rules[0].metricsQuery", "names the object"),
        ("{<<.LabelMatchers>>}[2m]", "[2m]", Warning, "rules[0].metricsQuery", "does not depend"),
        (
            "<<.LabelMatchers>>}[2m]",
            "<<.LabelMatchersByName>>}[2m]",
            Error,
            "rules[0].metricsQuery",
            "no field `.LabelMatchersByName`",
        ),
        ("<<.LabelMatchers>>}[2m]", "<<.LabelMatchers>>[2m]", Error, "rules[0].metricsQuery", "not PromQL"),
        (
            "{<<.LabelMatchers>>}[2m]",
            "{<<.LabelValuesByName.nope>>}[2m]",
            Error,
            "rules[0].metricsQuery",
            "<no value>",
        ),
        ("<<.LabelMatchers>>}[2m]", "{{.LabelMatchers}}}[2m]", Warning, "rules[0].metricsQuery", "{{"),
        ("<<.GroupBy>>", "<<.GroupBy", Error, "rules[0].metricsQuery", "unexpected right paren"),
        ("^(.*)_total$", "_total", Warning, "rules[0].name.as", "becomes nothing"),
        (
            "    overrides:\n      namespace: {resource: namespace}\n  metrics",
            "    namespaced: true\n  metrics",
            Error,
            "externalRules[0].resources",
            "all of them fail",
        ),
        (
            "{<<.LabelMatchers>>})'\nr",
            "{<<.LabelMatchers>>}) by (<<.GroupBy>>)'\nr",
            Note,
            "externalRules[0].metricsQuery",
            "one value",
        ),
        ("  window: 5m\n", "", Warning, "resourceRules.window", "no time"),
        ("    containerLabel: container\n", "", Error, "resourceRules.cpu.containerLabel", "by (pod,)"),
        (
            "        node: {resource: node}\n",
            "",
            Error,
            "resourceRules.cpu.resources",
            "no label names nodes",
        ),
    ] {
        let text = changed(from, to);
        if part.is_empty() {
            assert_eq!(found(&text), [], "{to}");
        } else {
            has(&text, severity, key, part);
        }
    }
}

#[test]
fn finds_useless_and_duplicate_rules() {
    has(
        "rules: [{seriesQuery: a, metricsQuery: 'a{<<.LabelMatchers>>}'}]",
        Severity::Error,
        "rules[0].resources",
        "finds no metric",
    );
    has("rules: [{seriesQuery: a}]", Severity::Error, "rules[0].metricsQuery", "no query");
    has(
        "rules:\n- &a {seriesQuery: a, resources: {template: <<.Resource>>}}\n- *a",
        Severity::Warning,
        "rules[1]",
        "same names as rules[0]",
    );
    has(
        "rules: [{seriesQuery: a, name: {matches: _total}}]",
        Severity::Warning,
        "rules[0].name.matches",
        "only what the expression matches",
    );
    has(
        "rules: [{seriesQuery: a, resources: {template: <<.Group>>_<<.Resource>>}}]",
        Severity::Note,
        "rules[0].resources.template",
        "dot",
    );
    has("{}\n---\nrules: []", Severity::Warning, "", "first document");
    has("", Severity::Warning, "", "nothing is served");
    let text = "rules:\n- seriesquery: x\n";
    assert_eq!(
        found(text),
        [(Severity::Error, "rules[0].seriesquery: unknown key `seriesquery`".to_owned(), 2)]
    );
    let unknown =
        lint("rules: [{seriesQuery: a, resources: {overrides: {x: {resource: foo}}}}]", Some(&mapper()));
    assert!(unknown.iter().any(|finding| finding.message.contains("no matches for /, Resource=foo")));
}

#[test]
fn explains_step_by_step() {
    let config = AdapterConfig::parse(GOOD).unwrap();
    let series =
        [parse_series("http_requests_total{namespace=\"a,b\",pod=\"c\", code=\"2\"}"), parse_series("up")];
    let explain = |choice: &str| {
        explain(&config, &mapper(), Compat::Better, &RuleSelection::parse(choice), &series).unwrap()
    };
    let all = explain("");
    assert_eq!(
        all.iter().map(|e| (e.section, e.rule)).collect::<Vec<_>>(),
        [("rules", 0), ("externalRules", 0)]
    );
    let one = &explain("rules[0]")[0];
    assert_eq!(
        one.discovery_request,
        "/api/v1/series?match[]=http_requests_total{namespace!=\"\",pod!=\"\"}"
    );
    let metric = &one.metrics[0];
    assert_eq!(metric.metric.as_deref(), Some("http_requests_per_second"));
    assert_eq!(metric.other_labels, ["code"]);
    let shown: Vec<_> = metric.resources.iter().map(|r| (&*r.label, &*r.resource, r.namespaced)).collect();
    assert_eq!(shown, [("namespace", "namespaces", false), ("pod", "pods", true)]);
    assert_eq!(
        metric.examples[1].path,
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/my-pod/http_requests_per_second"
    );
    let expected = "sum(rate(http_requests_total{namespace=\"default\",pod=\"my-pod\"}[2m])) by (pod)";
    assert_eq!(metric.examples[1].query.as_deref(), Ok(expected));
    assert_eq!(one.metrics[1].metric, None, "`up` does not end in _total");
    assert_eq!(
        explain("externalRules[0]")[0].metrics[1].examples[0].query.as_deref(),
        Ok("sum(up{namespace=\"default\"})")
    );
    assert_eq!(explain("queue_depth{namespace!=\"\"}").len(), 1);
}

proptest::proptest! {
    #[test]
    fn arbitrary_files_do_not_panic(text in "(rules|externalRules|resourceRules|cpu): ?\n?( |-|\n|\\{|\\}|seriesQuery: |name: |as: |\\$1x|<<|>>|\\.Series|if |end|range |resources: |template: |[a-z\"'(){}\\[\\]|*:,])*") {
        let _ = lint(&text, None);
        if let Ok(config) = AdapterConfig::parse(&text) {
            let _ = super::super::rule::Rules::compile(&config, &mapper(), Compat::Strict);
        }
    }

    #[test]
    fn templates_never_panic(text in "(<<-? ?(if|range|with|end|else|\\.Series|\\.GroupBySlice|\\$x|\\$x :=|printf \"%[*0-9.-]*[sdqvx]\"|index|slice|[0-9]+|\\(|\\)|\\|| |\"a\"|print)* ?-?>>|[a-z ]){0,8}") {
        if let Ok(template) = crate::prometheus::template::Template::parse("metrics-query", &text) {
            let _ = template.query(&crate::prometheus::template::QueryArgs::default());
        }
    }

    #[test]
    fn go_regexes_are_accepted(text in "[a-c(){}\\[\\]*+?|\\\\^$.:,0-9<>PQEdwsx-]{0,24}") {
        let _ = crate::prometheus::names::GoRegex::new(&text);
    }
}
