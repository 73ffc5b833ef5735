//! Worked examples.

use api::keda::{AdvancedConfig, Fallback, ScaledObject, ScalingModifiers, Trigger, TriggerHealth};
use api::provider::Compat;
use jiff::Timestamp;
use quantity::Quantity;

use super::{CompiledFormula, FormulaInput, coerced, missing_name_warning};
use crate::float::parse_float;

fn object(formula: &str, target: &str, names: &[(&str, &str)]) -> ScaledObject {
    let mut object = ScaledObject::default();
    let scaling_modifiers =
        ScalingModifiers { formula: formula.into(), target: target.into(), ..ScalingModifiers::default() };
    object.spec.advanced = Some(Box::new(AdvancedConfig { scaling_modifiers, ..AdvancedConfig::default() }));
    object.spec.triggers = names
        .iter()
        .map(|(type_, name)| Trigger { type_: (*type_).into(), name: (*name).into(), ..Trigger::default() })
        .collect();
    object
}

fn two(formula: &str) -> ScaledObject {
    object(formula, "2", &[("redis", "a"), ("cron", "b")])
}

fn value(object: &ScaledObject, compat: Compat, values: &[Option<&str>]) -> Result<Quantity, String> {
    let compiled = CompiledFormula::new(object, compat)?;
    let values: Vec<Option<Quantity>> =
        values.iter().map(|value| value.map(|text| text.parse().unwrap())).collect();
    let names: Vec<String> = (0..values.len()).map(|index| format!("s{index}-x")).collect();
    let inputs: Vec<FormulaInput<'_>> = values
        .iter()
        .zip(&names)
        .enumerate()
        .filter_map(|(trigger, (value, metric))| {
            Some(FormulaInput { trigger, metric, value: value.as_ref()? })
        })
        .collect();
    Ok(compiled.evaluate(object, &inputs, Timestamp::UNIX_EPOCH)?)
}

fn better(formula: &str, values: &[Option<&str>]) -> Result<String, String> {
    value(&two(formula), Compat::Better, values).map(|value| value.to_string())
}

#[test]
fn numbers_are_cut_to_thousandths() {
    assert_eq!(better("a / b", &[Some("2"), Some("3")]).as_deref(), Ok("666e-3"));
    assert_eq!(better("-a / b", &[Some("2"), Some("3")]).as_deref(), Ok("-666e-3"));
    assert_eq!(better("a + b", &[Some("1500m"), Some("1k")]).as_deref(), Ok("1001500e-3"));
    assert_eq!(better("a ** b", &[Some("10"), Some("3")]).as_deref(), Ok("1e3"));
}

#[test]
fn formula_is_wrapped_in_float() {
    assert_eq!(coerced("a + b"), "float(a + b)");
    assert_eq!(coerced("float(a) + 1"), "float(a) + 1");
    assert_eq!(coerced(" float(a)"), "float( float(a))");
    let nil = "let _kedaCompositeResult = (a ?? b); _kedaCompositeResult == nil ? nil : float(_kedaCompositeResult)";
    assert_eq!(coerced("a ?? b"), nil);
    assert_eq!(coerced(nil.replace("(a ?? b)", "(a ?? 1)").as_str()), nil.replace("(a ?? b)", "(a ?? 1)"));
}

#[test]
fn texts_of_refusals() {
    let refused =
        |object: &ScaledObject| CompiledFormula::new(object, Compat::Strict).unwrap_err().to_string();
    assert_eq!(refused(&object("", "2", &[])), "error ScalingModifiers.Formula is mandatory");
    assert_eq!(
        refused(&object("a", "", &[("cron", "a")])),
        "error validating formula in ScalingModifiers\nformula is given but target is empty"
    );
    assert_eq!(
        refused(&object("a + d", "2", &[("cron", "a")])),
        "error validating formula in ScalingModifiers\nunknown name d (1:11)\n | float(a + d)\n | ..........^"
    );
    assert_eq!(
        refused(&object("a", "x", &[("cron", "a")])),
        "error validating target in ScalingModifiers\nerror converting target for scalingModifiers \
         (string->float) to valid target: strconv.ParseFloat: parsing \"x\": invalid syntax"
    );
    let mut utilization = object("a", "2", &[("cron", "a")]);
    utilization.spec.advanced.as_mut().unwrap().scaling_modifiers.metric_type = "Utilization".into();
    assert_eq!(
        refused(&utilization),
        "error validating target in ScalingModifiers\nerror trigger type is Utilization, but it needs to be \
         AverageValue or Value for external metrics"
    );
}

#[test]
fn formula_that_fails_in_trial_run_is_refused() {
    let refused = CompiledFormula::new(&two("[a][5]"), Compat::Better).unwrap_err().to_string();
    assert!(
        refused.starts_with("error validating formula in ScalingModifiers\nindex out of range: 5"),
        "{refused}"
    );
    // Tried with −1: nothing is found, and nil is no float.
    assert!(CompiledFormula::new(&two("find([a, b], # > 0)"), Compat::Better).is_err());
    assert!(CompiledFormula::new(&two("find([a, b], # > 0) ?? 0"), Compat::Better).is_ok());
}

#[test]
fn only_named_external_triggers_are_variables() {
    let triggers = [("cpu", "a"), ("memory", "b"), ("cron", "c"), ("redis", "")];
    assert!(CompiledFormula::new(&object("c", "2", &triggers), Compat::Better).is_ok());
    for name in ["a", "b", "redis"] {
        assert!(CompiledFormula::new(&object(name, "2", &triggers), Compat::Better).is_err(), "{name}");
    }
    let object = object("c * 2", "2", &triggers);
    assert_eq!(
        value(&object, Compat::Better, &[Some("1"), Some("1"), Some("4"), Some("9")]).unwrap().to_string(),
        "8"
    );
    assert!(
        missing_name_warning(&object.spec.triggers[3], "s3-redis").unwrap().ends_with("for metric s3-redis")
    );
    assert!(missing_name_warning(&object.spec.triggers[0], "s0-cpu").is_none());
}

#[test]
fn metric_without_value_is_nil() {
    assert_eq!(better("a ?? b", &[None, Some("3")]).as_deref(), Ok("3"));
    let error = better("a + b", &[None, Some("3")]).unwrap_err();
    assert!(
        error.starts_with("error trying to run custom formula: invalid operation: <nil> + float64"),
        "{error}"
    );
    assert_eq!(
        better("a ?? b", &[None, None]).unwrap_err(),
        "scalingModifiers formula evaluated to nil but no fallback is configured"
    );
}

#[test]
fn failed_metric_is_nil_with_fallback_scaling_modifiers() {
    let mut object = two("a ?? b");
    let failed = TriggerHealth { number_of_failures: Some(4), status: "Failing".into() };
    object.status.health.insert("s0-x".into(), failed);
    let values = [Some("-1"), Some("3")];
    let mut served = |behavior: &str, failure_threshold: i32| {
        let behavior = behavior.into();
        object.spec.fallback = Some(Fallback { failure_threshold, replicas: 7, behavior });
        value(&object, Compat::Better, &values).unwrap().to_string()
    };
    assert_eq!(served("scalingModifiers", 3), "3");
    assert_eq!(served("scalingModifiers", 4), "-1");
    assert_eq!(served("static", 3), "-1");
}

#[test]
fn nil_falls_back_to_replicas_times_target() {
    let mut object = object("a ?? b", "2.5", &[("redis", "a"), ("cron", "b")]);
    object.spec.fallback = Some(Fallback { failure_threshold: 3, replicas: 3, behavior: String::new() });
    assert_eq!(value(&object, Compat::Better, &[None, None]).unwrap().to_string(), "7500e-3");
}

#[test]
fn non_numeric_result_is_an_error() {
    for (a, b) in [("1", "0"), ("-1", "0"), ("0", "0")] {
        for compat in [Compat::Strict, Compat::Better] {
            let error = value(&two("a / b"), compat, &[Some(a), Some(b)]).unwrap_err();
            assert!(error.contains("is no value of a metric"), "{error}");
        }
    }
    assert!(better("a * 1e17", &[Some("1"), Some("1")]).is_err());
}

#[test]
fn integer_result_is_refused_only_in_strict_mode() {
    let object = two("float(a) > 2 ? 5 : 1");
    let values = [Some("3"), Some("1")];
    assert_eq!(value(&object, Compat::Better, &values).unwrap().to_string(), "5");
    assert_eq!(
        value(&object, Compat::Strict, &values).unwrap_err(),
        "formula returned non-float result int (5)"
    );
    assert_eq!(
        value(&two("float(a) == 3"), Compat::Better, &values).unwrap_err(),
        "formula returned non-float result bool (true)"
    );
}

#[test]
fn integer_overflow_wraps_only_in_strict_mode() {
    let object = two("9223372036854775807 + int(b)");
    assert!(
        value(&object, Compat::Better, &[Some("1"), Some("1")]).unwrap_err().contains("integer overflow")
    );
    assert!(value(&object, Compat::Strict, &[Some("1"), Some("1")]).is_err(), "too large for a metric");
    let object = two("(9223372036854775807 + int(b)) / 1e17");
    let wrapped = value(&object, Compat::Strict, &[Some("1"), Some("1")]).unwrap();
    assert_eq!(wrapped.milli_value(), -92_233);
}

#[test]
fn trial_values_do_not_decide_what_overflows() {
    // The trial run computes int(1 / 0).
    let object = two("int(1 / (a - b))");
    assert_eq!(value(&object, Compat::Better, &[Some("2"), Some("1")]).unwrap().to_string(), "1");
    let error = value(&object, Compat::Better, &[Some("2"), Some("2")]).unwrap_err();
    assert!(error.contains("invalid operation: int(+Inf)"), "{error}");
    let object = two("max([int(1 / (a - b)), 3])");
    assert_eq!(value(&object, Compat::Strict, &[Some("2"), Some("2")]).unwrap().to_string(), "3");
}

#[test]
fn durations_are_no_results() {
    assert!(CompiledFormula::new(&two("duration('1m')"), Compat::Better).is_err());
    assert!(CompiledFormula::new(&two("int(duration('1m'))"), Compat::Better).is_ok());
}

#[test]
fn non_finite_targets_are_accepted_only_in_strict_mode() {
    for text in ["NaN", "Inf"] {
        let object = object("a", text, &[("redis", "a")]);
        assert!(CompiledFormula::new(&object, Compat::Strict).is_ok(), "{text}");
        assert!(CompiledFormula::new(&object, Compat::Better).is_err(), "{text}");
    }
}

#[test]
fn floats_are_parsed_as_in_go() {
    for (text, number) in [
        ("2", 2.0),
        ("+3", 3.0),
        ("-0", 0.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1E3", 1000.0),
        ("1_000", 1000.0),
        ("0x10p1", 32.0),
        ("0X1.8p0", 1.5),
        ("-Inf", f64::NEG_INFINITY),
        ("infinity", f64::INFINITY),
    ] {
        assert_eq!(parse_float(text), Ok(number), "{text}");
    }
    assert!(parse_float("nan").unwrap().is_nan());
    for text in [
        "", " 2", "2 ", "x", "1,5", "0x10", "1__0", "_1", "1_", "1e", ".", "e3", "+-1", "+nan", "--1",
        "1e1.5",
    ] {
        let expected = format!("strconv.ParseFloat: parsing {text:?}: invalid syntax");
        assert_eq!(parse_float(text).map_err(|error| error.to_string()), Err(expected), "{text}");
    }
    assert!(parse_float("1e400").unwrap_err().to_string().ends_with("value out of range"));
}
