//! Formulas of the scaling modifiers of ScaledObjects.

use api::keda::{AdvancedConfig, ScaledObject, ScalingModifiers, Trigger};
use api::provider::Compat;
use jiff::Timestamp;
use keda::formula::{EvaluationContext, Program, Value};
use keda::modifiers::CompiledFormula;

/// The input is a formula over three triggers. A formula that compiles gives the same result each time, also with values that are missing or
/// not finite.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let names = ["a", "b", "c"].map(str::to_owned);
    let context = EvaluationContext { now: Timestamp::UNIX_EPOCH, compat: Compat::Better };
    if let Ok(program) = Program::compile(&text, &names) {
        for values in [
            [Value::Float(-1.0), Value::Float(0.0), Value::Float(1e300)],
            [Value::Nil, Value::Float(f64::NAN), Value::Float(2.5)],
        ] {
            let once = program.run(&values, context).map(|value| value.to_string());
            let again = program.run(&values, context).map(|value| value.to_string());
            assert_eq!(once, again, "{text}");
        }
    }
    let trigger = |name: &String| Trigger { name: name.clone(), ..Trigger::default() };
    let scaling_modifiers =
        ScalingModifiers { formula: text.into_owned(), target: "2".into(), ..ScalingModifiers::default() };
    let mut object = ScaledObject::default();
    object.spec.triggers = names.iter().map(trigger).collect();
    object.spec.advanced = Some(Box::new(AdvancedConfig { scaling_modifiers, ..AdvancedConfig::default() }));
    if let Ok(compiled) = CompiledFormula::new(&object, Compat::Better) {
        let _ = compiled.evaluate(&object, &[], Timestamp::UNIX_EPOCH);
    }
}
