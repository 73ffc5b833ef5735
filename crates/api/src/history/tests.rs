#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod nanoseconds;

use std::sync::Arc;

use engine::pod::{ConditionStatus, Container, ReadyCondition, Resources};
use engine::{
    ControllerConfig, Decision, MetricSamples, Observation, Pod, PodPhase, PodSamples, PodSelection,
    PodTemplate, Sample, Scale, ScaleWriteResult, Spec, State, Status,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use quantity::Quantity;

use super::*;
use crate::decisions::passes::PassItem;
use crate::decisions::{API_VERSION, DecisionMeta, DecisionMode, DecisionRecord};

const PERIOD: SignedDuration = SignedDuration::from_secs(15);

fn spec() -> Spec {
    let hpa = serde_json::json!({
        "metadata": {"namespace": "shop", "name": "checkout-frontend"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout-frontend"},
            "minReplicas": 2, "maxReplicas": 60,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}],
        },
    });
    crate::convert::spec_of_hpa(&serde_json::from_value(hpa).unwrap())
}

/// A run of the engine: of each pass, the jitter of its time in milliseconds and the load of all pods in millicores, or none if metrics
/// cannot be read.
fn run(passes: &[(i64, Option<i64>)]) -> Vec<Decision> {
    let spec = spec();
    let requests = vec![("cpu".to_owned(), Quantity::parse("500m").unwrap())];
    let resources = Resources { requests, limits: Vec::new() };
    let container = Container { name: "app".into(), restarts: false, resources };
    let shape = Arc::new(PodTemplate { containers: vec![container], ..PodTemplate::default() });
    let noon = Timestamp::from_second(1_767_268_800).unwrap();
    let started = noon - SignedDuration::from_hours(1);
    let (mut state, mut status, mut replicas) = (State::default(), Status::default(), 10);
    let decide = |(n, (jitter, load)): (usize, &(i64, Option<i64>))| {
        let now = noon + PERIOD * n as i32 + SignedDuration::from_millis(*jitter);
        let pod = |n: i32| Pod {
            name: format!("checkout-frontend-7d4b9c-{n}").into(),
            phase: PodPhase::Running,
            deleting: false,
            started: Some(started),
            ready: Some(ReadyCondition { status: ConditionStatus::True, since: started }),
            shape: shape.clone(),
        };
        let samples = load.map(|load| {
            let sample = |pod: i32| Sample {
                at: now,
                window: PERIOD,
                milli: (load / i64::from(replicas) + i64::from(pod * 7 % 13)).into(),
            };
            let by_pod = (0..replicas).map(|pod| Some(sample(pod))).collect();
            MetricSamples::PerPod(PodSamples { by_pod, stray: Vec::new() })
        });
        let seen = Observation {
            config: Arc::new(ControllerConfig::default()),
            spec: Arc::new(spec.clone()),
            status: status.clone(),
            scale: Ok(Scale {
                spec_replicas: replicas.into(),
                status_replicas: replicas.into(),
                selector: "app=checkout-frontend".to_owned(),
            }),
            selection: PodSelection::Ours,
            pods: (0..replicas).map(pod).collect(),
            samples: vec![samples.ok_or_else(|| "unable to fetch metrics from resource metrics API".into())],
        };
        let mut decision = state.step(now, &seen);
        state.settle(now, &seen, &mut decision, ScaleWriteResult::Done);
        decision.status_written("checkout-frontend", Ok(()));
        status.clone_from(&decision.status);
        replicas = decision.desired.get().max(1);
        decision
    };
    passes.iter().enumerate().map(decide).collect()
}

fn pass(decision: &Decision) -> NewPass<'_> {
    NewPass { mode: DecisionMode::Active, period: PERIOD, decision, round: None }
}

/// Packs the passes into as many chunks as they need.
fn pack(decisions: &[Decision]) -> Vec<Chunk> {
    let spec = serde_json::to_string(&spec()).unwrap();
    let (mut shared, mut open, mut chunks) = (SharedTexts::default(), ChunkBuilder::default(), Vec::new());
    for (n, decision) in decisions.iter().enumerate() {
        if open.is_full() {
            chunks.push(open.finish());
        }
        let time = PassTime { at: decision.at, number: n as u64 * 9973, continues: n % 3 == 1 };
        assert!(open.push(&mut shared, time, &spec, &pass(decision)));
        assert_eq!(open.newest_at(), Some(decision.at));
    }
    chunks.push(open.chunk());
    chunks
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// Every pass of the chunks is the decision that was made.
fn assert_equal(chunks: &[Chunk], decisions: &[Decision]) {
    let mut expected = decisions.iter().enumerate();
    for chunk in chunks {
        let mut reader = chunk.read();
        while let Some(time) = reader.advance() {
            let (n, decision) = expected.next().unwrap();
            assert_eq!(time, PassTime { at: decision.at, number: n as u64 * 9973, continues: n % 3 == 1 });
            let found = reader.document().unwrap();
            assert_eq!(json(&found.decision), json(decision));
            assert_eq!(json(&found.spec), json(&spec()));
            let meta = DecisionMeta { name: "hpa.web".into(), namespace: "shop".into() };
            let record = found.record(API_VERSION, meta);
            assert_eq!((record.first, record.last, record.times), (decision.at, decision.at, 1));
        }
    }
    assert!(expected.next().is_none());
}

/// A day of load with noise around a curve.
fn realistic(passes: i64) -> Vec<(i64, Option<i64>)> {
    (0..passes).map(|n| (n * 7919 % 9, Some(2500 + 300 * ((n * 37 % 100) - 50) / 100 + n * 2))).collect()
}

#[test]
fn quiet_pass_takes_at_most_forty_bytes() {
    let decisions = run(&realistic(600));
    let chunks = pack(&decisions);
    assert_equal(&chunks, &decisions);
    let total: usize = chunks.iter().map(|chunk| chunk.packed_bytes() + chunk.approximate_bytes()).sum();
    let packed: usize = chunks.iter().map(Chunk::packed_bytes).sum();
    let each = packed / decisions.len();
    assert!(each <= 30, "{each} bytes each, packed");
    let each = (total - packed) / decisions.len();
    assert!(each <= 40, "{each} bytes each, with tables of their chunks");
    let text: usize = decisions.iter().map(|decision| json(&pass(decision)).len()).sum();
    assert!(packed * 30 < text, "{packed} bytes for {text}");
}

#[test]
fn equal_failures_are_kept_once() {
    let decisions = run(&[(0, None); 60]);
    let chunks = pack(&decisions);
    assert_equal(&chunks, &decisions);
    let each = chunks.iter().map(Chunk::packed_bytes).sum::<usize>() / 60;
    assert!(each <= 16, "{each} bytes for a pass that fails as the one before");
}

#[test]
fn texts_that_look_like_numbers_and_times_are_kept_as_written() {
    let texts = [
        "2026-01-01T12:00:15Z",
        "2026-01-01T12:00:15.000Z",
        "2026-01-01t12:00:15z",
        "2026-13-01T12:00:15Z",
        "PT5M",
        "PT300S",
        "P",
        "-PT1S",
        "305m",
        "-305m",
        "0305m",
        "-0",
        "007",
        "1.5",
        "1e3",
        "9223372036854775808",
        "12Mi",
        "12MiB",
        "ü",
        "a\\b\"c\n",
        "\u{1}",
        "",
        "9999-12-31T00:00:00Z",
    ];
    let mut open = ChunkBuilder::default();
    let mut shared = SharedTexts::default();
    for text in texts {
        let pass = serde_json::json!({"text": text, "list": [text, 0.1, -0.0, 1e300, u64::MAX, i64::MIN, null, true]});
        let time = PassTime { at: Timestamp::UNIX_EPOCH, number: 7, continues: false };
        assert!(open.push(&mut shared, time, "{}", &pass));
        let chunk = open.chunk();
        let mut reader = chunk.read();
        while reader.advance().is_some_and(|_| reader.left_for_test() > 0) {}
        let found = String::from_utf8(reader.json().unwrap()).unwrap();
        assert_eq!(found, format!("{{\"spec\":{{}},{}", &json(&pass)[1..]), "{text}");
    }
}

/// What serializes in another way than numbers, strings and structs do.
#[derive(serde::Serialize)]
enum Variant {
    Unit,
    Tuple(u8, i128),
    #[serde(rename_all = "camelCase")]
    Fields {
        of_variant: char,
    },
    Value(f32),
}

#[test]
fn values_are_written_as_serde_json_does() {
    #[derive(serde::Serialize)]
    struct Values {
        variants: Vec<Variant>,
        by_number: std::collections::BTreeMap<u16, bool>,
        by_flag: std::collections::BTreeMap<bool, Option<()>>,
        by_text: std::collections::BTreeMap<&'static str, (u128, f32, f64)>,
    }
    let pass = Values {
        variants: vec![
            Variant::Unit,
            Variant::Tuple(7, i128::MIN),
            Variant::Fields { of_variant: '"' },
            Variant::Value(0.1),
        ],
        by_number: [(7, true)].into(),
        by_flag: [(false, None)].into(),
        by_text: [("12\"m", (u128::MAX, f32::NAN, f64::INFINITY))].into(),
    };
    let (mut open, mut shared) = (ChunkBuilder::default(), SharedTexts::default());
    let time = PassTime { at: Timestamp::UNIX_EPOCH, number: 1, continues: false };
    assert!(open.push(&mut shared, time, "{}", &pass));
    let chunk = open.finish();
    let mut reader = chunk.read();
    assert!(reader.advance().is_some());
    let found = String::from_utf8(reader.json().unwrap()).unwrap();
    assert_eq!(found, format!("{{\"spec\":{{}},{}", &json(&pass)[1..]));
}

#[test]
fn unused_texts_are_removed() {
    let mut shared = SharedTexts::default();
    let kept = shared.text("kept");
    for n in 0..20_000 {
        shared.text(&format!("text {n}"));
    }
    assert!(shared.approximate_bytes() < 600_000, "{}", shared.approximate_bytes());
    assert!(Arc::ptr_eq(&kept, &shared.text("kept")));
}

fn loads() -> impl Strategy<Value = Vec<(i64, Option<i64>)>> {
    let load = prop_oneof![8 => (0_i64..40_000).prop_map(Some), 1 => Just(None)];
    prop::collection::vec((-2000_i64..2000, load), 1..100)
}

fn values() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9 .:\\-\"\\\\]{0,12}".prop_map(Value::from),
        (-4_000_000_000_i64..4_000_000_000)
            .prop_map(|second| Value::from(Timestamp::from_second(second).unwrap().to_string())),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-c]", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn decoding_returns_what_was_encoded(loads in loads()) {
        let decisions = run(&loads);
        assert_equal(&pack(&decisions), &decisions);
    }

    #[test]
    fn any_document_is_read_back(values in prop::collection::vec((values(), any::<i32>()), 1..20)) {
        let (mut open, mut shared, mut expected) = (ChunkBuilder::default(), SharedTexts::default(), Vec::new());
        for (value, micros) in &values {
            let pass = serde_json::json!({"x": value});
            let at = Timestamp::from_microsecond((*micros).into()).unwrap();
            let time = PassTime { at, number: micros.unsigned_abs().into(), continues: true };
            let added = open.push(&mut shared, time, "{\"min\":1}", &pass);
            prop_assert!(added);
            expected.push((at, format!("{{\"spec\":{{\"min\":1}},{}", &json(&pass)[1..])));
        }
        let chunk = open.finish();
        let mut reader = chunk.read();
        for (at, text) in expected {
            prop_assert_eq!(reader.advance().map(|time| time.at), Some(at));
            prop_assert_eq!(String::from_utf8(reader.json().unwrap()).unwrap(), text);
        }
        prop_assert!(reader.advance().is_none());
    }

    #[test]
    fn damaged_segment_never_panics(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (mut bytes, _) = segment(&run(&realistic(30)));
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(mut reader) = SegmentReader::new(&bytes) {
            while reader.advance().is_some() {
                drop(reader.record());
            }
        }
    }
}

/// A segment of two autoscalers, and where each pass ends.
fn segment(decisions: &[Decision]) -> (Vec<u8>, Vec<usize>) {
    let spec = json(&spec());
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut bytes);
    let mut shared = SharedTexts::default();
    let numbers = [0, 1].map(|n| {
        let metadata = DecisionMeta { name: format!("hpa.web-{n}"), namespace: "shop".into() };
        writer.add_autoscaler(&mut bytes, API_VERSION, metadata)
    });
    let mut chunks = [ChunkBuilder::default(), ChunkBuilder::default()];
    for (n, decision) in decisions.iter().enumerate() {
        let chunk = &mut chunks[n % 2];
        // A chunk may end before it is full.
        if chunk.len() == 13 {
            chunk.finish();
        }
        let time = PassTime { at: decision.at, number: n as u64, continues: false };
        assert!(chunk.push(&mut shared, time, &spec, &pass(decision)));
        writer.push(&mut bytes, numbers[n % 2], chunk, n > 1);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

/// A recording that is cut anywhere, as by `kill -9`, has all passes that were written completely.
#[test]
fn cut_segment_is_read_up_to_its_last_complete_pass() {
    let decisions = run(&realistic(60));
    let (bytes, ends) = segment(&decisions);
    for cut in (0..=bytes.len()).step_by(7).chain([bytes.len()]) {
        let mut reader = SegmentReader::new(&bytes[..cut]).unwrap();
        let complete = ends.iter().filter(|end| **end <= cut).count();
        for (n, decision) in decisions.iter().enumerate().take(complete) {
            let pass = reader.advance().unwrap();
            assert_eq!((pass.time.at, pass.metadata.name), (decision.at, format!("hpa.web-{}", n % 2)));
            if cut == bytes.len() {
                let record = reader.record().unwrap();
                assert_eq!(json(&record.decision), json(decision));
                assert_eq!((record.metadata.namespace.as_str(), record.times), ("shop", 1));
            }
        }
        assert!(reader.advance().is_none(), "{cut}");
        assert!(reader.rest() < 4000);
    }
    assert!(SegmentReader::new(b"something else").is_err());
    assert!(SegmentReader::new(b"plimsoll recording 1").is_ok(), "cut within the first line of version 1");
}

/// A pass in short.
fn item(decision: Decision) -> serde_json::Value {
    let at = decision.at;
    let record = DecisionRecord {
        api_version: API_VERSION.into(),
        kind: "Decision".into(),
        metadata: DecisionMeta { name: "hpa.web".into(), namespace: "shop".into() },
        mode: DecisionMode::Active,
        first: at,
        last: at,
        times: 1,
        period: PERIOD,
        spec: spec(),
        decision,
        round: None,
    };
    serde_json::to_value(PassItem::of(&record)).unwrap()
}

#[test]
fn passes_have_the_documented_fields() {
    let mut decisions = run(&[(7, Some(4000)), (0, None)]);
    let failed = item(decisions.remove(1));
    let scaled = item(decisions.remove(0));
    assert_eq!(scaled["at"], "2026-01-01T12:00:00.007Z");
    assert_eq!((&scaled["current"], &scaled["desired"]), (&10.into(), &17.into()));
    assert_eq!((&scaled["min"], &scaled["max"], &scaled["mode"]), (&2.into(), &60.into(), &"active".into()));
    assert_eq!((&scaled["outcome"], &scaled["changed"]), (&"scaled".into(), &true.into()));
    let metric = &scaled["metrics"][0];
    assert_eq!(
        (&metric["name"], &metric["value"], &metric["target"]),
        (&"cpu".into(), &"81%".into(), &"50%".into())
    );
    assert_eq!((&metric["ratio"], &metric["proposal"]), (&1.62.into(), &17.into()));
    assert_eq!(failed["outcome"], "failed");
    assert!(failed["metrics"][0]["error"].as_str().unwrap().contains("unable to fetch metrics"), "{failed}");
    assert!(failed["metrics"][0]["value"].is_null());
}
