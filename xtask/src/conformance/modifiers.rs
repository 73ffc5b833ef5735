//! Formulas of ScaledObjects (`modifiers.jsonl`).

use ::quantity::Quantity;
use api::keda::{AdvancedConfig, Fallback, ScaledObject, ScalingModifiers, Trigger, TriggerHealth};
use api::map::Map;
use api::provider::Compat;
use jiff::Timestamp;
use keda::modifiers::{CompiledFormula, FormulaInput, missing_name_warning};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Difference, Outcome};

#[derive(Deserialize)]
struct ModifiersRecord {
    r#in: In,
    out: Out,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct In {
    #[serde(default)]
    formula: String,
    #[serde(default)]
    target: String,
    triggers: Vec<ScriptedModifiers>,
    fallback: Option<Fallback>,
    #[serde(default)]
    health: Map<TriggerHealth>,
    #[serde(default)]
    fallback_active: bool,
    #[serde(default)]
    fallback_metrics: Vec<ScriptedModifiers>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScriptedModifiers {
    #[serde(default)]
    name: String,
    r#type: String,
    metric_name: String,
    value: Option<Quantity>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Out {
    compile_error: Option<String>,
    compiled_formula: Option<String>,
    pair_error: Option<String>,
    error: Option<String>,
    metrics: Vec<ModifierMetric>,
    /// The number results from an overflow and is rejected here.
    implementation_specific: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModifierMetric {
    metric_name: String,
    value: Quantity,
}

pub(crate) fn replay(records: &[Value]) -> Vec<Outcome> {
    records.iter().map(|record| Outcome::of(record, |compat| check(record, compat))).collect()
}

fn check(record: &Value, compat: Compat) -> Result<Vec<Difference>, serde_json::Error> {
    let ModifiersRecord { r#in, out } = ModifiersRecord::deserialize(record)?;
    let object = scaled_object(&r#in);
    let mut found = ModifierOutput(Vec::new());
    let compiled = CompiledFormula::new(&object, compat).map_err(String::from);
    found.error("compileError", out.compile_error.as_ref(), compiled.as_ref().err());
    let Ok(compiled) = compiled else {
        return Ok(found.0);
    };
    found.same("compiledFormula", &json!(out.compiled_formula), &json!(compiled.text()));
    let yielded = || r#in.triggers.iter().enumerate();
    let unnamed = yielded().zip(&object.spec.triggers).find_map(|((_, scripted), trigger)| {
        scripted.value.as_ref()?;
        missing_name_warning(trigger, &scripted.metric_name)
    });
    found.same("pairError", &json!(out.pair_error), &json!(unnamed));
    let inputs: Vec<FormulaInput<'_>> = yielded()
        .filter_map(|(trigger, scripted)| {
            let value = scripted.value.as_ref()?;
            Some(FormulaInput { trigger, metric: &scripted.metric_name, value })
        })
        .collect();
    let fallen: Vec<Quantity> =
        r#in.fallback_metrics.iter().filter_map(|metric| metric.value.clone()).collect();
    let fallen = r#in.fallback_active.then_some(fallen.as_slice());
    let served = compiled.serve(&object, &inputs, fallen, Timestamp::UNIX_EPOCH).map_err(String::from);
    if out.implementation_specific {
        if let Ok(served) = served {
            found.same("metrics", &json!("an error"), &json!(format!("{served:?}")));
        }
        return Ok(found.0);
    }
    found.error("error", out.error.as_ref(), served.as_ref().err());
    let served = served.unwrap_or_default();
    let same = served.len() == out.metrics.len()
        && served.iter().zip(&out.metrics).all(|(a, b)| a.metric == b.metric_name && a.value == b.value);
    if !same {
        let expected: Vec<_> = out.metrics.iter().map(|m| format!("{}={}", m.metric_name, m.value)).collect();
        let got: Vec<_> = served.iter().map(|m| format!("{}={}", m.metric, m.value)).collect();
        found.same("metrics", &json!(expected), &json!(got));
    }
    Ok(found.0)
}

fn scaled_object(given: &In) -> ScaledObject {
    let mut object = ScaledObject::default();
    let scaling_modifiers = ScalingModifiers {
        formula: given.formula.clone(),
        target: given.target.clone(),
        ..ScalingModifiers::default()
    };
    object.spec.advanced = Some(Box::new(AdvancedConfig { scaling_modifiers, ..AdvancedConfig::default() }));
    object.spec.triggers = given
        .triggers
        .iter()
        .map(|trigger| Trigger {
            type_: trigger.r#type.clone(),
            name: trigger.name.clone(),
            ..Trigger::default()
        })
        .collect();
    object.spec.fallback.clone_from(&given.fallback);
    object.status.health.clone_from(&given.health);
    object
}

/// Differences collected so far.
struct ModifierOutput(Vec<Difference>);

impl ModifierOutput {
    fn same(&mut self, at: &str, expected: &Value, got: &Value) {
        if expected != got {
            self.0.push(Difference::json(at, expected, got));
        }
    }

    /// Only what the product itself says is compared; the diagnosis of a formula or number is a library's.
    fn error(&mut self, at: &str, expected: Option<&String>, got: Option<&String>) {
        let same = match (expected, got) {
            (None, None) => true,
            (Some(expected), Some(got)) => own_words(expected) == own_words(got),
            _ => false,
        };
        if !same {
            self.same(at, &json!(expected), &json!(got));
        }
    }
}

fn own_words(error: &str) -> &str {
    const LIBRARY: [&str; 3] = [
        "error validating formula in ScalingModifiers\n",
        "error trying to run custom formula: ",
        "to valid target: ",
    ];
    let own = LIBRARY.iter().find_map(|end| {
        let is_own = !error.ends_with("formula is given but target is empty");
        error.find(end).filter(|_| is_own).and_then(|at| error.get(..at + end.len()))
    });
    own.unwrap_or(error)
}
