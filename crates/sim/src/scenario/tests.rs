use api::yaml::SourceFile;

use super::*;

const GOOD: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: example
        resources: {requests: {cpu: 200m}, limits: {cpu: 500m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 10
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: plimsoll.dev/v1alpha1
kind: Scenario
metadata: {name: web}
spec:
  duration: 10m
  workloads:
  - target: {name: web}
    containers:
    - name: app
      cpu: {idle: 2m, perUnit: 25m}
    load:
    - constant: 5
";

fn load_with(text: &str, files: &dyn Files) -> Result<Scenario, Vec<String>> {
    let source = SourceFile::new("dir/web.yaml", text);
    Scenario::load(&[source], files).map_err(|problems| {
        let hint = |p: &Diagnostic| p.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        problems
            .iter()
            .map(|p| format!("{}:{}: {}{}", p.span.line, p.span.column, p.message, hint(p)))
            .collect()
    })
}

fn no_files(_: &Path) -> std::io::Result<Vec<u8>> {
    Err(std::io::Error::other("no such file"))
}

fn load(text: &str) -> Result<Scenario, Vec<String>> {
    load_with(text, &no_files)
}

#[test]
fn a_good_scenario_has_defaults() {
    let scenario = load(GOOD).unwrap();
    assert_eq!((scenario.duration, scenario.sync_period), (Millis::from_mins(10), Millis::from_secs(15)));
    assert_eq!(scenario.start.to_string(), "2026-01-05T00:00:00Z");
    assert_eq!(*scenario.config, ControllerConfig::default());
    let [workload] = scenario.workloads.as_slice() else { panic!() };
    assert_eq!((workload.selector.as_str(), workload.plan.replicas), ("app=web", 2));
    let usage = workload.containers[0].cpu;
    assert_eq!((usage.idle, usage.per_unit, usage.limit), (2.0, 25.0, 500.0));
    let [autoscaler] = scenario.autoscalers.as_slice() else { panic!() };
    assert_eq!(
        (autoscaler.selected_workloads.as_slice(), autoscaler.period),
        ([0].as_slice(), Millis::from_secs(15))
    );
}

#[test]
fn times_parse_in_every_form() {
    let text = GOOD.replace("duration: 10m", "start: 2026-01-05T23:55:00Z\n  duration: 10m");
    let scenario = load(&text).unwrap();
    for (text, expected) in [
        ("3m", Some(Millis::from_mins(3))),
        ("23:57", Some(Millis::from_mins(2))),
        ("00:01:30", Some(Millis::from_secs(390))),
        ("2026-01-06T00:00:00Z", Some(Millis::from_mins(5))),
        ("11m", None),
        ("-1s", None),
        ("12:00", None),
        ("noon", None),
    ] {
        assert_eq!(scenario.moment(text), expected, "{text}");
    }
}

/// One change to the good scenario, and the one problem it makes.
#[test]
fn bad_scenarios_by_table() {
    let mut wrong = Vec::new();
    for (from, to, expected) in [
        (
            "maxReplicas: 10",
            "maxReplicas: 0",
            "21:16: Required value: must be set and greater than 0|21:16: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ),
        (
            "minReplicas: 1\n",
            "minReplicas: 11\n",
            "21:16: Invalid value: 10: must be greater than or equal to `minReplicas`",
        ),
        (
            "minReplicas: 1\n",
            "minReplicas: 0\n",
            "20:16: Invalid value: 0: must be greater than or equal to 1|22:3: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
        ),
        (
            "maxReplicas: 10",
            "maxReplicas: 10001",
            "21:16: the simulator has at most 10000 pods per workload, found 10001",
        ),
        (
            "apiVersion: apps/v1",
            "apiVersion: v1",
            "1:13: expected apiVersion `apps/v1` for Deployment, found `v1`",
        ),
        ("replicas: 2", "replicas: -1", "5:13: `replicas` must be from 0 to 10000, found -1"),
        ("replicas: 2", "replcas: 2", "5:3: unknown field `replcas` (did you mean `replicas`?)"),
        ("resources: {req", "resourcs: {req", "13:9: unknown field `resourcs` (did you mean `resources`?)"),
        (
            "labels: {app: web}",
            "labels: {app: wbe}",
            "6:3: `selector` does not match the labels of `template`",
        ),
        (
            "kind: Deployment, name: web",
            "kind: Deployment, name: wbe",
            "19:65: no manifest declares Deployment `wbe` in default (did you mean `web`?)",
        ),
        (
            "kind: Deployment, name: web",
            "kind: DaemonSet, name: web",
            "19:47: the simulator has no workloads of kind `DaemonSet` (there is `Deployment`, `StatefulSet`, `ReplicaSet`)",
        ),
        (
            "averageUtilization",
            "averageUtilisation",
            "24:55: unknown field `averageUtilisation` (did you mean `averageUtilization`?)",
        ),
        (
            "resource: {name: cpu",
            "resource: {name: nvidia.com/gpu",
            "24:22: the simulator knows cpu and memory, not `nvidia.com/gpu`",
        ),
        ("duration: 10m", "duration: 0s", "34:13: `duration` must be from 1s to 400d, found 0s"),
        ("duration: 10m", "duration: 1000d", "34:13: `duration` must be from 1s to 400d, found 1000d"),
        (
            "duration: 10m",
            "duration: 10",
            "34:13: expected a duration such as `30s` or `1m30s`, found the integer 10",
        ),
        ("duration: 10m", "duration: 10m\n  tick: 1ms", "35:9: `tick` must be from 100ms to 1d, found 1ms"),
        ("duration: 10m", "duratoin: 10m", "34:3: unknown field `duratoin` (did you mean `duration`?)"),
        (
            "duration: 10m",
            "duration: 400d\n  tick: 100ms",
            "34:13: this would evaluate shapes of load 691200000 times; 500000000 times are allowed (shorten `duration` or lengthen `tick`)",
        ),
        (
            "duration: 10m",
            "duration: 10m\n  controller: {tolerance: -1}",
            "35:27: `tolerance` must be from 0 to 1000, found -1",
        ),
        (
            "duration: 10m",
            "duration: 10m\n  controller: {featureGates: {HPAScaleToZer: true}}",
            "35:46: feature gate `HPAScaleToZer` makes no difference here (did you mean `HPAScaleToZero`?)",
        ),
        ("duration: 10m", "duration: 10m\n  start: yesterday", "*"),
        (
            "duration: 10m",
            "duration: 10m\n  start: 1890-01-01T00:00:00Z",
            "35:10: `start` must be from 1970 to 9990",
        ),
        (
            "duration: 10m",
            "duration: 10m\n  outages: [{resource: gpu, from: 1m}]",
            "35:24: expected `cpu` or `memory`, found `gpu`",
        ),
        (
            "duration: 10m",
            "duration: 10m\n  outages: [{metric: x, from: 1m}]",
            "35:22: no workload has a metric `x`",
        ),
        (
            "duration: 10m",
            "duration: 10m\n  outages: [{from: 2m, to: 1m}]",
            "35:28: `to` must be later than `from`",
        ),
        (
            "target: {name: web}",
            "target: {name: wbe}",
            "36:20: no manifest declares Deployment `wbe` in default (did you mean `web`?)",
        ),
        (
            "    load:\n    - constant: 5\n",
            "    load: []\n",
            "40:5: this workload gets no load (for example `- constant: 10`)",
        ),
        ("    load:\n    - constant: 5\n", "", "36:5: missing field `load`"),
        ("- constant: 5", "- constant: .nan", "*"),
        (
            "- constant: 5",
            "- constant: 1e300",
            "41:17: `constant` must be from -1000000000 to 1000000000, found 1e300",
        ),
        ("- constant: 5", "- constnt: 5", "41:7: unknown value `constnt` (did you mean `constant`?)"),
        ("- constant: 5", "- ramp: {to: 5, start: 2m, end: 1m}", "41:37: `end` must be later than `start`"),
        ("- constant: 5", "- step: {to: 5, at: -2m}", "41:25: `at` must be from 0s to 400d, found -2m"),
        (
            "- constant: 5",
            "- wave: {low: 0, high: 1, period: 0s}",
            "41:39: `period` must be from 1s to 400d, found 0s",
        ),
        (
            "- constant: 5",
            "- daily: {low: 0, high: 1, peak: 25:00}",
            "41:38: expected a time of the day such as `15:00`, found the string \"25:00\"",
        ),
        ("- constant: 5", "- noise: {amplitude: ten}", "*"),
        ("- constant: 5", "- trace: {file: load.csv}", "41:21: cannot read dir/load.csv: no such file"),
        (
            "- name: app\n      cpu",
            "- name: ap\n      cpu",
            "38:13: Deployment `web` has no container `ap` (did you mean `app`?)",
        ),
        (
            "cpu: {idle: 2m,",
            "cpu: {idle: -2m,",
            "39:19: `idle` must not be negative or beyond all sense, found -2m",
        ),
        ("cpu: {idle: 2m,", "cpu: {idle: two,", "*"),
        (
            "    containers:\n    - name: app\n      cpu",
            "    pods: {startDelay: -1s}\n    containers:\n    - name: app\n      cpu",
            "37:24: `startDelay` must be from 0s to 1d, found -1s",
        ),
        (
            "    containers:\n    - name: app\n      cpu",
            "    pods: {failing: 2}\n    containers:\n    - name: app\n      cpu",
            "37:21: `failing` must be from 0 to 1, found 2",
        ),
        (
            "    containers:\n    - name: app\n      cpu",
            "    serves: {perPod: 0}\n    containers:\n    - name: app\n      cpu",
            "37:22: `perPod` must be above 0 and at most 1000000000",
        ),
        (
            "    containers:\n    - name: app\n      cpu",
            "    metrics: [{name: q, as: External, value: Backlog}]\n    containers:\n    - name: app\n      cpu",
            "37:46: without `serves.queue: true` nothing waits, so the backlog is always 0",
        ),
        (
            "    containers:\n    - name: app\n      cpu",
            "    metrics: [{name: q, as: External}]\n    containers:\n    - name: app\n      cpu",
            "37:16: a metric needs `value` or `load`",
        ),
        ("kind: Scenario", "kind: Scenaro", "31:7: unknown kind `Scenaro` (did you mean `Scenario`?)"),
        (
            "plimsoll.dev/v1alpha1",
            "plimsoll.dev/v1",
            "30:13: expected apiVersion `plimsoll.dev/v1alpha1`, found `plimsoll.dev/v1`",
        ),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let found = load(&text).map(|_| ()).expect_err(to).join("|");
        let fits = match expected.strip_suffix('*') {
            Some(start) => found.starts_with(start) && !found.contains('|'),
            None => found == expected,
        };
        if !fits {
            wrong.push(format!("{to}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn scenarios_that_take_too_long_are_rejected() {
    let text = GOOD
        .replace("duration: 10m", "duration: 400d\n  controller: {syncPeriod: 1s}")
        .replace("maxReplicas: 10", "maxReplicas: 10000");
    let found = load(&text).map(|_| ()).unwrap_err().join("|");
    assert!(found.contains("pods and metrics 345600000000 times"), "{found}");
    let shapes = "- constant: 5\n".to_owned() + &"    - constant: 1\n".repeat(1000);
    let text = GOOD.replace("duration: 10m", "duration: 30d").replace("- constant: 5\n", &shapes);
    let found = load(&text).map(|_| ()).unwrap_err().join("|");
    assert!(found.contains("shapes of load 2597184000 times"), "{found}");
}

#[test]
fn missing_and_duplicate_documents_are_problems() {
    let documents: Vec<&str> = GOOD.split("---\n").collect();
    let [deployment, hpa, _, scenario] = documents.as_slice() else { panic!() };
    let without = |text: &str| load(text).map(|_| ()).unwrap_err().join("|");
    assert!(
        without(&format!("{deployment}---\n{hpa}")).starts_with("1:1: there is no document of kind Scenario")
    );
    assert!(without("").starts_with("1:1: there is no document of kind Scenario"));
    assert!(without(scenario).contains("no manifest declares Deployment `web`"));
    let twice = |what: &str| without(&format!("{GOOD}---\n{what}"));
    assert_eq!(twice(deployment), "45:18: Deployment `web` is already declared at dir/web.yaml:3");
    assert_eq!(twice(hpa), "45:18: an autoscaler `web` is already declared");
    assert_eq!(twice(scenario), "44:7: there is already a document of kind Scenario; one run has one");
    assert!(twice("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\n").ends_with(
        "ScaledObject cannot be simulated yet (`plimsoll up FILE` runs it, in real time or faster)"
    ));
    assert!(without("kind: [}").contains(':'));
    assert!(without("a: 1").contains("no `kind`"));
    // An autoscaler is not needed: the fixed size is what others are compared with.
    assert!(load(&format!("{deployment}---\n{scenario}")).is_ok());
}

#[test]
fn event_driven_objects_are_left_out_if_an_operator_acts_on_them() {
    let objects = ["ScaledObject", "ScaledJob"]
        .map(|kind| format!("---\napiVersion: keda.sh/v1alpha1\nkind: {kind}\n"));
    let source = SourceFile::new("web.yaml", GOOD.to_owned() + &objects.concat());
    let variation = Variation { leaves_out_event_driven: true, ..Variation::default() };
    let scenario = Scenario::load_varied(std::slice::from_ref(&source), variation, &no_files).unwrap();
    assert_eq!((scenario.workloads.len(), scenario.autoscalers.len()), (1, 1));
    assert_eq!(Scenario::load(&[source], &no_files).unwrap_err().len(), 2);
}

#[test]
fn metrics_find_their_series() {
    let metrics = "    metrics:
    - {name: queue_length, as: External, value: Offered, labels: {queue: a}}
    - {name: queue_length, as: External, value: Offered, labels: {queue: b}, scale: 2}
    - {name: rps, as: Object, object: {kind: Ingress, name: main}, value: Offered}
    - {name: work, as: Pods, value: Served}
    load:
";
    let text = GOOD.replace("    load:\n", metrics);
    let with = |metric: &str| {
        let at = text.find("  - type: Resource").unwrap();
        let end = text[at..].find("---").unwrap() + at;
        load(&format!("{}  - {metric}\n{}", &text[..at], &text[end..]))
    };
    let series = |metric: &str| match &with(metric).unwrap().autoscalers[0].inputs[0].request {
        crate::inputs::MetricRequest::Totals(series) => series.len(),
        crate::inputs::MetricRequest::Pods(series) => series.len(),
        other => panic!("{other:?}"),
    };
    let external = |selector: &str| {
        format!(
            "{{type: External, external: {{metric: {{name: Queue_Length{selector}}}, target: {{type: AverageValue, averageValue: 5}}}}}}"
        )
    };
    assert_eq!(series(&external("")), 2);
    assert_eq!(series(&external(", selector: {matchLabels: {queue: a}}")), 1);
    let unknown = with(&external(", selector: {matchLabels: {queue: c}}")).map(|_| ()).unwrap_err().join("|");
    assert!(
        unknown.contains("nothing in the scenario serves") || unknown.contains("not for this target"),
        "{unknown}"
    );
    let object = "{type: Object, object: {describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: main}, metric: {name: rps}, target: {type: Value, value: 5}}}";
    assert_eq!(series(object), 1);
    let pods = |name: &str| {
        format!(
            "{{type: Pods, pods: {{metric: {{name: {name}}}, target: {{type: AverageValue, averageValue: 5}}}}}}"
        )
    };
    assert_eq!(series(&pods("work")), 1);
    let unknown = with(&pods("wrok")).map(|_| ()).unwrap_err().join("|");
    assert_eq!(
        unknown,
        "23:25: nothing in the scenario serves metric `wrok` as: Pods (did you mean `work`?)"
    );
}

#[test]
fn trace_paths_are_relative_to_the_scenario() {
    let text = GOOD.replace("- constant: 5", "- trace: {file: load.csv, column: b}");
    let file = |content: &'static str| {
        move |path: &Path| {
            assert_eq!(path, Path::new("dir/load.csv"));
            Ok(content.as_bytes().to_vec())
        }
    };
    let scenario = load_with(&text, &file("t,a,b\n0,1,2\n10,1,4\n")).unwrap();
    assert_eq!(scenario.workloads[0].plan.load.at(Millis::from_secs(5)), 3.0);
    let problem = |content| load_with(&text, &file(content)).map(|_| ()).unwrap_err().join("|");
    assert_eq!(problem("t,a,b\n0,1,2\n10,1,NaN\n"), "3:6: expected a number, found `NaN`");
    assert_eq!(problem(""), "1:1: the trace has no rows (expected lines such as `60,12.5`)");
    let late = problem("t,a,b\n2031-01-01T00:00:00Z,1,2\n");
    assert!(
        late.contains("the trace lies outside the scenario") && late.contains("`align: Start`"),
        "{late}"
    );
    assert!(problem("t,a,b\n0,1,\u{0}\n").contains("expected a number"));
}
