use api::yaml::SourceFile;

use super::trace::TraceOptions;
use super::*;

fn secs(seconds: i64) -> Millis {
    Millis::from_secs(seconds)
}

fn levels(shape: &CurveShape, seconds: &[i64]) -> Vec<f64> {
    seconds.iter().map(|s| (shape.at(secs(*s)) * 1e9).round() / 1e9).collect()
}

#[test]
fn shapes_by_table() {
    let spike = |rise, hold, fall| CurveShape::Spike {
        height: 10.0,
        at: secs(10),
        rise: secs(rise),
        hold: secs(hold),
        fall: secs(fall),
    };
    let step = |until| CurveShape::Step { from: 1.0, to: 5.0, at: secs(10), until };
    let ramp = CurveShape::Ramp { from: 10.0, to: 0.0, start: secs(10), end: secs(20) };
    let wave = CurveShape::Wave { low: 2.0, high: 6.0, period: secs(40), peak: secs(10) };
    for (name, shape, at, expected) in [
        ("constant", CurveShape::Constant(3.0), vec![0, 100], vec![3.0, 3.0]),
        ("step", step(Millis::NEVER), vec![0, 9, 10, 1000], vec![1.0, 1.0, 5.0, 5.0]),
        ("step back", step(secs(20)), vec![9, 10, 19, 20], vec![1.0, 5.0, 5.0, 1.0]),
        ("ramp", ramp, vec![0, 10, 15, 20, 30], vec![10.0, 10.0, 5.0, 0.0, 0.0]),
        (
            "spike",
            spike(10, 10, 10),
            vec![0, 10, 15, 20, 30, 35, 40, 50],
            vec![0.0, 0.0, 5.0, 10.0, 10.0, 5.0, 0.0, 0.0],
        ),
        ("square spike", spike(0, 10, 0), vec![9, 10, 19, 20, 99], vec![0.0, 10.0, 10.0, 0.0, 0.0]),
        ("wave", wave, vec![10, 20, 30, 40, 50, 0], vec![6.0, 4.0, 2.0, 4.0, 6.0, 4.0]),
    ] {
        assert_eq!(levels(&shape, &at), expected, "{name}");
    }
}

#[test]
fn shapes_add_up_and_never_go_below_zero() {
    let shapes = vec![
        CurveShape::Constant(5.0),
        CurveShape::Ramp { from: 0.0, to: -20.0, start: secs(0), end: secs(20) },
    ];
    let load = LoadCurve::new(shapes, Vec::new());
    assert_eq!([0, 2, 10].map(|s| load.at(secs(s))), [5.0, 3.0, 0.0]);
    assert_eq!(load.at(secs(-60)), load.at(secs(0)));
}

#[test]
fn noise_is_bounded_and_repeatable() {
    let noise = |amplitude| Noise { amplitude, period: secs(10), seed: Seed::new(7) };
    let load = LoadCurve::new(vec![CurveShape::Constant(100.0)], vec![noise(Amplitude::Share(0.1))]);
    let levels: Vec<f64> = (0..1000).map(|s| load.at(secs(s))).collect();
    assert!(levels.iter().all(|l| (90.0..=110.0).contains(l)));
    assert!(levels.iter().any(|l| *l < 95.0) && levels.iter().any(|l| *l > 105.0));
    assert_eq!(levels, (0..1000).map(|s| load.at(secs(s))).collect::<Vec<_>>());
    let units = LoadCurve::new(vec![CurveShape::Constant(100.0)], vec![noise(Amplitude::Units(10.0))]);
    assert_eq!(units.at(secs(55)), load.at(secs(55)));
}

fn reading() -> TraceOptions<'static> {
    TraceOptions {
        column: None,
        interpolate: true,
        repeat: false,
        from_start: false,
        scale: 1.0,
        start: "2026-01-01T00:00:00Z".parse().unwrap(),
    }
}

fn trace(text: &str, reading: &TraceOptions<'_>) -> Result<Trace, String> {
    Trace::parse(&SourceFile::new("load.csv", text), reading).map_err(|problem| problem.to_string())
}

#[test]
fn traces_by_table() {
    let plain = "time,value\n0,10\n10,20\n# pause\n\n20,0\n";
    let clock = "2026-01-01T00:00:00Z,10\r\n2026-01-01T00:00:10Z,20\r\n2026-01-01T00:00:20Z,0\r\n";
    let unix = "1767225600;10\n1767225610;20\n1767225620;0";
    let later = "1000,10\n1010,20\n1020,0";
    let wide = "\u{FEFF}\"when\",\"a\",\"b\"\n0,1,10\n10,1,20\n20,1,0\n";
    let from_start = TraceOptions { from_start: true, ..reading() };
    let column = TraceOptions { column: Some("b"), ..reading() };
    for (text, how) in
        [(plain, reading()), (clock, reading()), (unix, reading()), (later, from_start), (wide, column)]
    {
        let trace = trace(text, &how).unwrap();
        assert_eq!(
            [-5, 0, 5, 10, 15, 20, 99].map(|s| trace.at(secs(s))),
            [10.0, 10.0, 15.0, 20.0, 10.0, 0.0, 0.0]
        );
    }
    let held = trace(plain, &TraceOptions { interpolate: false, scale: 2.0, ..reading() }).unwrap();
    assert_eq!([0, 9, 10, 99].map(|s| held.at(secs(s))), [20.0, 20.0, 40.0, 0.0]);
    let again = trace(plain, &TraceOptions { repeat: true, ..reading() }).unwrap();
    assert_eq!([0, 20, 25, 30, 35, -5].map(|s| again.at(secs(s))), [10.0, 0.0, 5.0, 10.0, 15.0, 5.0]);
    let one = trace("0,7", &TraceOptions { repeat: true, ..reading() }).unwrap();
    assert_eq!(one.at(secs(1234)), 7.0);
}

#[test]
fn invalid_traces_are_reported_with_position() {
    let named = TraceOptions { column: Some("load"), ..reading() };
    for (text, how, expected) in [
        ("", reading(), "load.csv:1:1: the trace has no rows"),
        ("time,value\n", reading(), "load.csv:1:1: the trace has no rows"),
        ("0,1\n10, NaN\n", reading(), "load.csv:2:5: expected a number, found `NaN`"),
        ("0,1\n10,inf\n", reading(), "load.csv:2:4: expected a number, found `inf`"),
        ("t,v\n0,1\n\n5,x\n", reading(), "load.csv:4:3: expected a number, found `x`"),
        ("0,1\n10,2\n10,3", reading(), "load.csv:3:1: the time is not later than that of the row before"),
        ("0,1\nsoon,2", reading(), "load.csv:2:1: expected a time in seconds or as RFC 3339, found `soon`"),
        ("0\n1\n", reading(), "load.csv:1:1: expected `time,value`, found only one field"),
        ("0,1\n", named.clone(), "load.csv:1:1: the first row has no names, so there is no column `load`"),
        ("time,rate\n0,1\n", named, "load.csv:1:1: there is no column `load`"),
    ] {
        assert_eq!(trace(text, &how).unwrap_err(), expected, "{text:?}");
    }
}
