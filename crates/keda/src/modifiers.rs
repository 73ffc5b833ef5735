//! Scaling modifiers: a formula combines metrics (docs/spec/keda.md 4.5).

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use api::keda::{COMPOSITE_METRIC, ScaledObject, Trigger};
use api::provider::Compat;
use jiff::Timestamp;
use quantity::{Format, Quantity};

use crate::float::{ParseFloatError, parse_float};
use crate::formula::{EvaluationContext, FormulaError, Program, Value};

/// A value of a trigger.
#[derive(Clone, Copy, Debug)]
pub struct FormulaInput<'a> {
    /// Index of its trigger in the ScaledObject.
    pub trigger: usize,
    /// The metric's name.
    pub metric: &'a str,
    /// The value.
    pub value: &'a Quantity,
}

/// A served value.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositeValue {
    /// The metric's name.
    pub metric: String,
    /// The value.
    pub value: Quantity,
}

/// Why a formula is invalid or has no value. Admission and the operator report these texts, which are KEDA's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModifiersError {
    /// There is no formula.
    #[error("error ScalingModifiers.Formula is mandatory")]
    NoFormula,
    /// There is no target.
    #[error("error validating formula in ScalingModifiers\nformula is given but target is empty")]
    NoTarget,
    /// The formula cannot be compiled, or its trial run failed.
    #[error("error validating formula in ScalingModifiers\n{0}")]
    InvalidFormula(#[source] FormulaError),
    /// The target is not a positive number.
    #[error(
        "error validating target in ScalingModifiers\nerror converting target for scalingModifiers (string->float) to \
         valid target: {0}"
    )]
    InvalidTarget(#[source] FormulaTargetError),
    /// The target type is invalid for external metrics.
    #[error(
        "error validating target in ScalingModifiers\nerror trigger type is Utilization, but it needs to be AverageValue \
         or Value for external metrics"
    )]
    InvalidTargetType,
    /// The formula failed at run time.
    #[error("error trying to run custom formula: {0}")]
    Evaluation(#[source] FormulaError),
    /// The result is nil without a fallback.
    #[error("scalingModifiers formula evaluated to nil but no fallback is configured")]
    Nil,
    /// The result is not a number.
    #[error("formula returned non-float result {type_name} ({value})")]
    NotANumber {
        /// Its type in Go.
        type_name: &'static str,
        /// Its value.
        value: String,
    },
    /// The result is infinite, NaN or too large for a metric.
    #[error("formula returned {0}, which is no value of a metric: does it divide by zero?")]
    OutOfRange(String),
    /// The formula is missing although the object has one.
    #[error("the formula is not known")]
    NotCompiled,
}

/// Why the target of a formula is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormulaTargetError {
    /// It is no number.
    #[error(transparent)]
    Syntax(#[from] ParseFloatError),
    /// It is not above zero, or infinite; holds the text.
    #[error("{0}")]
    OutOfRange(&'static str),
}

impl From<ModifiersError> for String {
    fn from(error: ModifiersError) -> Self {
        error.to_string()
    }
}

/// The compiled and validated formula of a ScaledObject.
#[derive(Clone, Debug)]
pub struct CompiledFormula {
    program: Program,
    target: f64,
    /// Index of each trigger's variable; none for triggers without a name and resource triggers.
    variables: Vec<Option<usize>>,
    compat: Compat,
}

impl CompiledFormula {
    /// Validates formula, target and type of a ScaledObject with [`ScaledObject::modifiers`]; the error is
    /// what admission responds and the operator reports.
    pub fn new(object: &ScaledObject, compat: Compat) -> Result<Self, ModifiersError> {
        let empty = api::keda::ScalingModifiers::default();
        let modifiers = object.modifiers().unwrap_or(&empty);
        if modifiers.formula.is_empty() {
            return Err(ModifiersError::NoFormula);
        }
        if modifiers.target.is_empty() {
            return Err(ModifiersError::NoTarget);
        }
        let (names, variables) = variables(&object.spec.triggers);
        let program =
            Program::compile(&coerced(&modifiers.formula), &names).map_err(ModifiersError::InvalidFormula)?;
        // A trial run with fixed values at a fixed time. It is always strict, because `int(1 / (a - b))` is refused only for
        // values for which it overflows.
        let values = vec![Value::Float(-1.0); names.len()];
        let moment = EvaluationContext { now: Timestamp::UNIX_EPOCH, compat: Compat::Strict };
        program.run(&values, moment).map_err(ModifiersError::InvalidFormula)?;
        let target = target(&modifiers.target, compat)?;
        if modifiers.metric_type == "Utilization" {
            return Err(ModifiersError::InvalidTargetType);
        }
        Ok(Self { program, target, variables, compat })
    }

    /// The formula with the conversion to a float around it.
    pub fn text(&self) -> &str {
        self.program.source()
    }

    /// The target of the formula.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// The composite value. Metrics without a value are missing in `inputs` and nil in the formula, as are
    /// those that failed too often (health of `object`) with the fallback behavior `scalingModifiers`. `now` is the value of
    /// `now()`.
    pub fn evaluate(
        &self,
        object: &ScaledObject,
        inputs: &[FormulaInput<'_>],
        now: Timestamp,
    ) -> Result<Quantity, ModifiersError> {
        let mut values = vec![Value::Nil; self.program.names().len()];
        for input in inputs {
            let place = self.variables.get(input.trigger).copied().flatten();
            if let Some(value) = place.and_then(|place| values.get_mut(place)) {
                let given_up = is_given_up(object, input.metric);
                *value = if given_up { Value::Nil } else { Value::Float(input.value.as_f64()) };
            }
        }
        let moment = EvaluationContext { now, compat: self.compat };
        let result = self.program.run(&values, moment).map_err(ModifiersError::Evaluation)?;
        match result {
            Value::Float(number) => milli(number),
            // Integers are accepted, too.
            Value::Int(number) if !self.compat.is_strict() => milli(number as f64),
            Value::Nil => match &object.spec.fallback {
                Some(fallback) => milli(f64::from(fallback.replicas) * self.target),
                None => Err(ModifiersError::Nil),
            },
            other => {
                Err(ModifiersError::NotANumber { type_name: other.type_name(), value: other.to_string() })
            }
        }
    }

    /// The values served instead of the triggers' metrics. `fallen_back` are the fallback values of metrics, if there are any:
    /// then the first of them is served and the formula is not evaluated.
    pub fn serve(
        &self,
        object: &ScaledObject,
        inputs: &[FormulaInput<'_>],
        fallen_back: Option<&[Quantity]>,
        now: Timestamp,
    ) -> Result<Vec<CompositeValue>, ModifiersError> {
        let composite = |value: Quantity| vec![CompositeValue { metric: COMPOSITE_METRIC.to_owned(), value }];
        match fallen_back {
            None => self.evaluate(object, inputs, now).map(composite),
            Some([value, ..]) => Ok(composite(value.clone())),
            Some([]) => {
                let as_it_is = |input: &FormulaInput<'_>| CompositeValue {
                    metric: input.metric.to_owned(),
                    value: input.value.clone(),
                };
                Ok(inputs.iter().map(as_it_is).collect())
            }
        }
    }
}

/// The log message for a trigger whose metric cannot be used in a formula.
pub fn missing_name_warning(trigger: &Trigger, metric: &str) -> Option<String> {
    let nameless = trigger.name.is_empty() && !trigger.is_resource();
    nameless.then(|| format!("trigger name not given with compositeScaler for metric {metric}"))
}

/// The variables of a formula, and the variable of each trigger.
fn variables(triggers: &[Trigger]) -> (Vec<String>, Vec<Option<usize>>) {
    let mut names: Vec<String> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let places = triggers.iter().map(|trigger| {
        if trigger.name.is_empty() || trigger.is_resource() {
            return None;
        }
        Some(*known.entry(&trigger.name).or_insert_with(|| {
            names.push(trigger.name.clone());
            names.len() - 1
        }))
    });
    let places = places.collect();
    (names, places)
}

/// Wraps a formula in a conversion to float; nil stays nil.
fn coerced(formula: &str) -> String {
    const RESULT: &str = "_kedaCompositeResult";
    if formula.contains("??") {
        if formula.starts_with(&format!("let {RESULT} = ")) {
            return formula.to_owned();
        }
        return format!("let {RESULT} = ({formula}); {RESULT} == nil ? nil : float({RESULT})");
    }
    if formula.starts_with("float(") { formula.to_owned() } else { format!("float({formula})") }
}

fn target(text: &str, compat: Compat) -> Result<f64, ModifiersError> {
    let target = parse_float(text).map_err(|error| ModifiersError::InvalidTarget(error.into()))?;
    // KEDA formats a nil error here.
    let why = if compat.is_strict() { "%!w(<nil>)" } else { "it must be a number above 0" };
    if target <= 0.0 || (!compat.is_strict() && !target.is_finite()) {
        return Err(ModifiersError::InvalidTarget(FormulaTargetError::OutOfRange(why)));
    }
    Ok(target)
}

/// Whether a metric failed so often that it is nil in the formula.
fn is_given_up(object: &ScaledObject, metric: &str) -> bool {
    object.spec.fallback.as_ref().filter(|fallback| fallback.behavior == "scalingModifiers").is_some_and(
        |fallback| {
            let failures = object.status.health.get(metric).and_then(|health| health.number_of_failures);
            failures.is_some_and(|failures| failures > fallback.failure_threshold)
        },
    )
}

/// A number truncated to thousandths. Overflow is an error; in KEDA it yields an arbitrary integer.
fn milli(number: f64) -> Result<Quantity, ModifiersError> {
    let scaled = number * 1000.0;
    if !(-9.2e18..9.2e18).contains(&scaled) {
        return Err(ModifiersError::OutOfRange(Value::Float(number).to_string()));
    }
    Ok(Quantity::from_milli(scaled as i64, Format::DecimalExponent))
}
