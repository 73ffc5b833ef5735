#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn sample(labels: &[(&str, &str)], time: i64, value: f64) -> VectorSample {
    let labels = labels.iter().map(|(name, value)| (Arc::from(*name), Box::from(*value))).collect();
    VectorSample { labels, time, value: Some(value) }
}

fn reply(samples: Vec<VectorSample>) -> QueryResponse {
    let result = QueryValue::Vector(Some(samples));
    QueryResponse { result, warnings: Vec::new(), infos: Vec::new(), size: 0 }
}

fn milli_of(value: f64, compat: Compat) -> Result<Option<i64>, &'static str> {
    milli(Some(value), compat, 0)
}

#[test]
fn values_are_truncated_and_saturate() {
    for (value, expected) in
        [(0.0015, 1), (-0.0001, 0), (2.9999, 2999), (-1.5, -1500), (9.22e15, 9_220_000_000_000_000_000)]
    {
        assert_eq!(milli_of(value, Compat::Better), Ok(Some(expected)), "{value}");
        assert_eq!(milli_of(value, Compat::Strict), Ok(Some(expected)), "{value}");
    }
    assert_eq!(milli_of(1e300, Compat::Better), Ok(Some(i64::MAX)));
    assert_eq!(milli_of(-1e300, Compat::Better), Ok(Some(i64::MIN)));
    assert_eq!(milli_of(f64::NAN, Compat::Better), Ok(None));
    assert_eq!(milli_of(f64::NEG_INFINITY, Compat::Better), Err("-Inf"));
    // Strict mode.
    assert_eq!(milli_of(1e300, Compat::Strict), Ok(Some(i64::MIN)));
    assert_eq!(milli_of(9.223_372_036_854_775e15, Compat::Strict), Ok(Some(i64::MIN)));
    assert_eq!(milli_of(f64::INFINITY, Compat::Strict), Ok(Some(i64::MIN)));
}

#[test]
fn last_duplicate_sample_wins_and_others_are_counted() {
    let answer = reply(vec![
        sample(&[("pod", "a")], 1000, 1.0),
        sample(&[("pod", "a")], 2000, 2.0),
        sample(&[("pod", "a")], 3000, f64::NAN),
        sample(&[("pod", "b")], 3000, f64::INFINITY),
    ]);
    let read = of_objects(&answer, "pod", &["c", "a"], Compat::Better).unwrap();
    let [None, Some(a)] = &read.found[..] else { panic!("{read:?}") };
    assert_eq!((a.value.to_string(), a.time), ("2".to_owned(), timestamp(2000)));
    assert_eq!((read.duplicates, read.without_value), (1, 1));
    let error = of_objects(&answer, "pod", &["a", "b"], Compat::Better).unwrap_err().to_string();
    assert_eq!(error, "the value of b is +Inf; check the query for a division by zero");
}

#[test]
fn missing_values_are_not_served_as_zero() {
    let nan = reply(vec![sample(&[("queue", "a")], 0, f64::NAN), sample(&[("queue", "b")], 0, 3.0)]);
    let read = external(&nan, "m", Compat::Better).unwrap();
    assert_eq!(read.found.len(), 1);
    let infinite = reply(vec![sample(&[("queue", "a")], 0, f64::INFINITY)]);
    let Err(MetricsError::Internal(text)) = external(&infinite, "m", Compat::Better) else {
        panic!("served")
    };
    assert!(text.contains(r#"m{queue="a"} is +Inf"#), "{text}");
}

#[test]
fn unknown_container_values_are_omitted() {
    let cpu = reply(vec![
        sample(&[("pod", "a"), ("c", "app")], 2000, 0.25),
        sample(&[("pod", "b"), ("c", "x")], 0, 1.0),
    ]);
    let memory = reply(vec![
        sample(&[("pod", "a"), ("c", "app")], 1000, 1024.0),
        sample(&[("pod", "a"), ("c", "new")], 3000, 2048.0),
        sample(&[("pod", "b"), ("c", "x")], 0, f64::INFINITY),
    ]);
    let part =
        |resource, format, reply| ResourceResponse { resource, format, label: "pod", container: "c", reply };
    let parts = [part("cpu", Format::DecimalSi, &cpu), part("memory", Format::BinarySi, &memory)];
    let shown = |compat| -> Vec<String> {
        pods(&parts, compat)
            .unwrap()
            .into_iter()
            .map(|(name, (time, containers))| {
                let containers: Vec<String> = containers
                    .iter()
                    .map(|c| {
                        let usage: Vec<String> = c.usage.iter().map(|(k, v)| format!("{k}={v}")).collect();
                        format!("{} {}", c.name, usage.join(" "))
                    })
                    .collect();
                format!("{name} {} {}", time.unwrap().as_second(), containers.join(", "))
            })
            .collect()
    };
    assert_eq!(shown(Compat::Better), ["a 1 app cpu=250m memory=1Ki, new memory=2Ki"]);
    assert_eq!(shown(Compat::Strict)[0], "a 1 app cpu=250m memory=1Ki, new cpu=0 memory=2Ki");
}

#[test]
fn first_sample_of_a_node_wins() {
    let cpu = reply(vec![sample(&[("node", "a")], 5000, 1.0), sample(&[("node", "a")], 1000, 9.0)]);
    let memory = reply(vec![sample(&[("node", "a")], 4000, -5.0)]);
    let part =
        |resource, format, reply| ResourceResponse { resource, format, label: "node", container: "", reply };
    let parts = [part("cpu", Format::DecimalSi, &cpu), part("memory", Format::BinarySi, &memory)];
    let (time, usage) = nodes(&parts, Compat::Better).unwrap().remove("a").unwrap();
    assert_eq!(
        (time, usage[0].1.to_string(), usage[1].1.to_string()),
        (timestamp(4000), "1".into(), "0".into())
    );
}
