//! Times and durations that are packed without being printed.

use super::*;

#[derive(serde::Serialize)]
struct Times {
    #[serde(serialize_with = "engine::nanoseconds::serialize")]
    at: Timestamp,
    #[serde(serialize_with = "engine::nanoseconds::serialize")]
    took: Option<SignedDuration>,
}

/// They are read back as `serde_json` writes them.
fn assert_read_back(passes: &[Times]) {
    let (mut open, mut shared) = (ChunkBuilder::default(), SharedTexts::default());
    for pass in passes {
        let time = PassTime { at: Timestamp::UNIX_EPOCH, number: 1, continues: false };
        assert!(open.push(&mut shared, time, "{}", pass));
    }
    let chunk = open.finish();
    let mut reader = chunk.read();
    for pass in passes {
        assert!(reader.advance().is_some());
        let found = String::from_utf8(reader.json().unwrap()).unwrap();
        assert_eq!(found, format!("{{\"spec\":{{}},{}", &json(pass)[1..]));
    }
}

#[test]
fn times_beyond_64_bits_of_nanoseconds_are_kept_as_texts() {
    assert_read_back(&[
        Times { at: Timestamp::MIN, took: Some(SignedDuration::MAX) },
        Times { at: Timestamp::UNIX_EPOCH, took: None },
        Times { at: Timestamp::MAX, took: Some(SignedDuration::MIN) },
        Times { at: Timestamp::UNIX_EPOCH, took: Some(SignedDuration::from_nanos(i64::MIN)) },
    ]);
}

#[test]
fn packed_times_are_those_of_texts() {
    let text = serde_json::json!({"at": "2026-01-01T12:00:15.25Z", "took": "-PT1M0.5S"});
    let times = Times {
        at: "2026-01-01T12:00:15.25Z".parse().unwrap(),
        took: Some(SignedDuration::from_millis(-60_500)),
    };
    let packed = |pass: &dyn Fn(&mut ChunkBuilder, &mut SharedTexts, PassTime) -> bool| {
        let (mut open, mut shared) = (ChunkBuilder::default(), SharedTexts::default());
        let time = PassTime { at: Timestamp::UNIX_EPOCH, number: 1, continues: false };
        assert!(pass(&mut open, &mut shared, time));
        let added = open.added();
        let shapes: Vec<Vec<u8>> = added.shapes.iter().map(|shape| shape.text().to_vec()).collect();
        (added.bytes.to_vec(), added.texts.to_vec(), shapes)
    };
    let of_text = packed(&|open, shared, time| open.push(shared, time, "{}", &text));
    assert_eq!(packed(&|open, shared, time| open.push(shared, time, "{}", &times)), of_text);
}

proptest! {
    #[test]
    fn all_times_are_read_back(times in prop::collection::vec((any::<i64>(), any::<Option<i64>>()), 1..5)) {
        let pass = |(at, took): (i64, Option<i64>)| Times {
            at: Timestamp::from_nanosecond(at.into()).unwrap(),
            took: took.map(SignedDuration::from_nanos),
        };
        assert_read_back(&times.into_iter().map(pass).collect::<Vec<_>>());
    }
}
