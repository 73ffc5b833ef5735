//! A formula makes one number of many (docs/spec/keda.md 4.5).

mod float;
#[cfg(test)]
mod tests;

use api::keda::{COMPOSITE_METRIC, ScaledObject, Trigger};
use api::provider::Compat;
use jiff::Timestamp;
use quantity::{Format, Quantity};

pub use float::parse_float;

use crate::formula::{Moment, Program, Value};

/// One number that a trigger yielded.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The place of its trigger in the ScaledObject.
    pub trigger: usize,
    /// The metric's name.
    pub metric: &'a str,
    /// The number.
    pub value: &'a Quantity,
}

/// One number that is served.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// The metric's name.
    pub metric: String,
    /// The number.
    pub value: Quantity,
}

/// The formula of a ScaledObject, checked and ready to be evaluated many times.
#[derive(Clone, Debug)]
pub struct Compiled {
    program: Program,
    target: f64,
    /// Which variable each trigger is; those without a name and resources are none.
    variables: Vec<Option<usize>>,
    compat: Compat,
}

impl Compiled {
    /// Checks formula, target and type of a ScaledObject for which [`ScaledObject::modifiers`] is given; the error is
    /// what admission answers and what the operator reports.
    pub fn new(object: &ScaledObject, compat: Compat) -> Result<Self, String> {
        let empty = api::keda::ScalingModifiers::default();
        let modifiers = object.modifiers().unwrap_or(&empty);
        if modifiers.formula.is_empty() {
            return Err("error ScalingModifiers.Formula is mandatory".to_owned());
        }
        let wrong_formula =
            |why: &dyn std::fmt::Display| format!("error validating formula in ScalingModifiers\n{why}");
        if modifiers.target.is_empty() {
            return Err(wrong_formula(&"formula is given but target is empty"));
        }
        let (names, variables) = variables(&object.spec.triggers);
        let program =
            Program::compile(&coerced(&modifiers.formula), &names).map_err(|error| wrong_formula(&error))?;
        // Tried once with numbers that nothing yields, at an instant that is no hour in particular.
        let values = vec![Value::Float(-1.0); names.len()];
        let moment = Moment { now: Timestamp::UNIX_EPOCH, compat };
        program.run(&values, moment).map_err(|error| wrong_formula(&error))?;
        let wrong_target = |why: String| format!("error validating target in ScalingModifiers\n{why}");
        let target = target(&modifiers.target, compat).map_err(wrong_target)?;
        if modifiers.metric_type == "Utilization" {
            let text = "error trigger type is Utilization, but it needs to be AverageValue or Value for external \
                        metrics";
            return Err(wrong_target(text.to_owned()));
        }
        Ok(Self { program, target, variables, compat })
    }

    /// The formula as it is run, with the conversion to a float around it.
    pub fn text(&self) -> &str {
        self.program.source()
    }

    /// What the result is held against.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// The composite value. Metrics that yielded nothing are left out of `inputs` and are nil in the formula, as are
    /// those that failed too often (health of `object`) where its fallback says `scalingModifiers`. `now` is what
    /// `now()` is in the formula.
    pub fn evaluate(
        &self,
        object: &ScaledObject,
        inputs: &[Input<'_>],
        now: Timestamp,
    ) -> Result<Quantity, String> {
        let mut values = vec![Value::Nil; self.program.names().len()];
        for input in inputs {
            let place = self.variables.get(input.trigger).copied().flatten();
            if let Some(value) = place.and_then(|place| values.get_mut(place)) {
                let given_up = is_given_up(object, input.metric);
                *value = if given_up { Value::Nil } else { Value::Float(input.value.as_f64()) };
            }
        }
        let moment = Moment { now, compat: self.compat };
        let result = self
            .program
            .run(&values, moment)
            .map_err(|error| format!("error trying to run custom formula: {error}"))?;
        match result {
            Value::Float(number) => milli(number),
            // A number is a number, whatever it is called.
            Value::Int(number) if !self.compat.is_strict() => milli(number as f64),
            Value::Nil => match &object.spec.fallback {
                Some(fallback) => milli(f64::from(fallback.replicas) * self.target),
                None => {
                    Err("scalingModifiers formula evaluated to nil but no fallback is configured".to_owned())
                }
            },
            other => Err(format!("formula returned non-float result {} ({other})", other.type_name())),
        }
    }

    /// What is served instead of the metrics of the triggers. `fallen_back` are the values of metrics that fell back
    /// by themselves, if any did: then the first of them stands for all, and nothing is computed.
    pub fn serve(
        &self,
        object: &ScaledObject,
        inputs: &[Input<'_>],
        fallen_back: Option<&[Quantity]>,
        now: Timestamp,
    ) -> Result<Vec<Served>, String> {
        let composite = |value: Quantity| vec![Served { metric: COMPOSITE_METRIC.to_owned(), value }];
        match fallen_back {
            None => self.evaluate(object, inputs, now).map(composite),
            Some([value, ..]) => Ok(composite(value.clone())),
            Some([]) => {
                let as_it_is = |input: &Input<'_>| Served {
                    metric: input.metric.to_owned(),
                    value: input.value.clone(),
                };
                Ok(inputs.iter().map(as_it_is).collect())
            }
        }
    }
}

/// Why a trigger's metric has no place in a formula: the words for a log.
pub fn nameless(trigger: &Trigger, metric: &str) -> Option<String> {
    let nameless = trigger.name.is_empty() && !trigger.is_resource();
    nameless.then(|| format!("trigger name not given with compositeScaler for metric {metric}"))
}

/// The names that a formula may use, and which of them each trigger is.
fn variables(triggers: &[Trigger]) -> (Vec<String>, Vec<Option<usize>>) {
    let mut names: Vec<String> = Vec::new();
    let places = triggers.iter().map(|trigger| {
        if trigger.name.is_empty() || trigger.is_resource() {
            return None;
        }
        let known = names.iter().position(|name| *name == trigger.name);
        Some(known.unwrap_or_else(|| {
            names.push(trigger.name.clone());
            names.len() - 1
        }))
    });
    let places = places.collect();
    (names, places)
}

/// A formula with the conversion to a float around it. What may be nil stays nil.
fn coerced(formula: &str) -> String {
    const RESULT: &str = "_kedaCompositeResult";
    if formula.contains("??") {
        if formula.starts_with(&format!("let {RESULT} =")) {
            return formula.to_owned();
        }
        return format!("let {RESULT} = ({formula}); {RESULT} == nil ? nil : float({RESULT})");
    }
    if formula.starts_with("float(") { formula.to_owned() } else { format!("float({formula})") }
}

fn target(text: &str, compat: Compat) -> Result<f64, String> {
    const WHERE: &str = "error converting target for scalingModifiers (string->float) to valid target: ";
    let target = parse_float(text).map_err(|error| format!("{WHERE}{error}"))?;
    // The original prints an error that is none here.
    let why = if compat.is_strict() { "%!w(<nil>)" } else { "it must be a number above 0" };
    if target <= 0.0 || (!compat.is_strict() && !target.is_finite()) {
        return Err(format!("{WHERE}{why}"));
    }
    Ok(target)
}

/// Whether a metric failed so often that the formula decides what that means.
fn is_given_up(object: &ScaledObject, metric: &str) -> bool {
    object.spec.fallback.as_ref().filter(|fallback| fallback.behavior == "scalingModifiers").is_some_and(
        |fallback| {
            let failures = object.status.health.get(metric).and_then(|health| health.number_of_failures);
            failures.is_some_and(|failures| failures > fallback.failure_threshold)
        },
    )
}

/// A number cut to thousandths. What none can hold is an error: the original makes some integer of it.
fn milli(number: f64) -> Result<Quantity, String> {
    let scaled = number * 1000.0;
    if !(-9.2e18..9.2e18).contains(&scaled) {
        let shown = Value::Float(number);
        return Err(format!(
            "formula returned {shown}, which is no value of a metric: does it divide by zero?"
        ));
    }
    Ok(Quantity::from_milli(scaled as i64, Format::DecimalExponent))
}
