//! Evaluation of a formula: a walk over its nodes with a budget of steps and memory.

mod each;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::budget::{Budget, EvaluationContext};
use super::catalog::Function;
use super::error::{EvalError, FormulaError};
use super::functions;
use super::operators;
use super::syntax::{Binary, Form, Id, Pointer, Tree};
use super::value::{Key, Map, Value};

/// Runs a formula.
pub(super) fn run(
    tree: &Tree,
    names: &[String],
    values: &[Value],
    moment: EvaluationContext,
) -> Result<Value, FormulaError> {
    let locals = vec![Value::Nil; tree.locals];
    let mut run = Run { tree, names, values, budget: Budget::new(moment), locals, scopes: Vec::new() };
    match run.node(tree.root) {
        Ok(value) => Ok(value),
        Err(Stop::Absent) => Ok(Value::Nil),
        Err(Stop::Failed(error)) => Err(*error),
    }
}

/// One run.
pub(super) struct Run<'a> {
    tree: &'a Tree,
    names: &'a [String],
    values: &'a [Value],
    budget: Budget,
    locals: Vec<Value>,
    scopes: Vec<Scope>,
}

/// The current item of a predicate.
#[derive(Default)]
struct Scope {
    item: Value,
    index: i64,
    accumulator: Value,
}

/// Why the evaluation of a node stopped.
enum Stop {
    /// A chain with `?.` reached nil.
    Absent,
    Failed(Box<FormulaError>),
}

type Answer = Result<Value, Stop>;

fn failed(at: u32) -> impl Fn(EvalError) -> Stop {
    move |error| Stop::Failed(Box::new(FormulaError::new(at, error)))
}

impl Run<'_> {
    fn node(&mut self, id: Id) -> Answer {
        let node = self.tree.node(id);
        let at = node.at;
        self.budget.spend(1).map_err(failed(at))?;
        match &node.form {
            Form::Constant(value) => Ok(value.clone()),
            Form::Variable(place) => Ok(self.values.get(*place).cloned().unwrap_or_default()),
            Form::Local(slot) => Ok(self.locals.get(*slot).cloned().unwrap_or_default()),
            Form::Pointer(pointer) => Ok(self.pointer(*pointer)),
            Form::Unary(operator, operand) => {
                let operand = self.node(*operand)?;
                operators::unary(*operator, &operand, &self.budget).map_err(failed(at))
            }
            Form::Binary(operator, left, right) => self.binary(*operator, *left, *right, at),
            Form::Apply { function, arguments } => self.apply(*function, arguments, at),
            Form::Choice { condition, yes, no } => {
                let chosen = if self.condition(*condition)? { yes } else { no };
                self.node(*chosen)
            }
            Form::Each { each, array, predicate, extra } => self.each(*each, *array, *predicate, *extra, at),
            Form::Array(items) => {
                let items = self.nodes(items)?;
                self.budget.array(items).map_err(failed(at))
            }
            _ => self.other(id, at),
        }
    }

    /// Rare nodes, in a function of their own to keep the stack frame of `eval` small.
    #[inline(never)]
    fn other(&mut self, id: Id, at: u32) -> Answer {
        match &self.tree.node(id).form {
            Form::Chain(inner) => match self.node(*inner) {
                Err(Stop::Absent) => Ok(Value::Nil),
                found => found,
            },
            Form::Member { base, key, optional } => {
                let base = self.base(*base, *optional)?;
                let key = self.node(*key)?;
                operators::fetch(&base, &key).map_err(failed(at))
            }
            Form::Slice { base, from, to } => self.slice(*base, *from, *to, at),
            Form::Method { base, name, arguments, optional } => {
                let base = self.base(*base, *optional)?;
                let arguments = self.nodes(arguments)?;
                self.budget.spend(20).map_err(failed(at))?;
                functions::method(&base, name, &arguments).map_err(failed(at))
            }
            Form::Let { value, body, slot, .. } => {
                let value = self.node(*value)?;
                if let Some(local) = self.locals.get_mut(*slot) {
                    *local = value;
                }
                self.node(*body)
            }
            Form::Sequence(items) => {
                let mut last = Value::Nil;
                for item in items {
                    last = self.node(*item)?;
                }
                Ok(last)
            }
            Form::Map(pairs) => self.map(pairs, at),
            Form::Matches(text, pattern) => match self.node(*text)? {
                Value::Text(text) => {
                    self.budget.spend(text.len() as u64).map_err(failed(at))?;
                    Ok(Value::Bool(pattern.is_match(&text)))
                }
                other => {
                    Err(failed(at)(format!("invalid operation: {} matches string", other.type_name()).into()))
                }
            },
            Form::All => self.all().map_err(failed(at)),
            _ => Err(failed(at)("function is not called".into())),
        }
    }

    fn nodes(&mut self, ids: &[Id]) -> Result<Vec<Value>, Stop> {
        let mut values = Vec::with_capacity(ids.len());
        for id in ids {
            values.push(self.node(*id)?);
        }
        Ok(values)
    }

    fn pointer(&self, pointer: Pointer) -> Value {
        let Some(scope) = self.scopes.last() else {
            return Value::Nil;
        };
        match pointer {
            Pointer::Item => scope.item.clone(),
            Pointer::Index => Value::Int(scope.index),
            Pointer::Accumulator => scope.accumulator.clone(),
        }
    }

    fn condition(&mut self, id: Id) -> Result<bool, Stop> {
        match self.node(id)? {
            Value::Bool(flag) => Ok(flag),
            other => {
                let text = format!("non-bool expression (type {}) used as condition", other.type_name());
                Err(failed(self.tree.node(id).at)(text.into()))
            }
        }
    }

    fn binary(&mut self, operator: Binary, left: Id, right: Id, at: u32) -> Answer {
        match operator {
            Binary::And => Ok(Value::Bool(self.condition(left)? && self.condition(right)?)),
            Binary::Or => Ok(Value::Bool(self.condition(left)? || self.condition(right)?)),
            Binary::Coalesce => match self.node(left)? {
                Value::Nil => self.node(right),
                value => Ok(value),
            },
            Binary::In => self.membership(left, right, at),
            _ => {
                let (left, right) = (self.node(left)?, self.node(right)?);
                operators::binary(operator, &left, &right, &mut self.budget).map_err(failed(at))
            }
        }
    }

    /// `in` with a range does not build the array.
    fn membership(&mut self, left: Id, right: Id, at: u32) -> Answer {
        let needle = self.node(left)?;
        let Form::Binary(Binary::Range, from, to) = self.tree.node(right).form else {
            let haystack = self.node(right)?;
            return operators::binary(Binary::In, &needle, &haystack, &mut self.budget).map_err(failed(at));
        };
        let (from, to) = (self.node(from)?, self.node(to)?);
        let found = match (&needle, &from, &to) {
            (Value::Int(number), Value::Int(from), Value::Int(to)) => from <= number && number <= to,
            (Value::Float(number), Value::Int(from), Value::Int(to)) => {
                number.fract() == 0.0 && *from as f64 <= *number && *number <= *to as f64
            }
            (_, Value::Int(_), Value::Int(_)) => false,
            _ => return operators::binary(Binary::Range, &from, &to, &mut self.budget).map_err(failed(at)),
        };
        Ok(Value::Bool(found))
    }

    fn apply(&mut self, function: Function, arguments: &[Id], at: u32) -> Answer {
        // Calls with one or two arguments need no list of them.
        let called = match arguments {
            [only] => {
                let only = self.node(*only)?;
                functions::call(function, std::slice::from_ref(&only), &mut self.budget)
            }
            [first, second] => {
                let both = [self.node(*first)?, self.node(*second)?];
                functions::call(function, &both, &mut self.budget)
            }
            _ => {
                let all = self.nodes(arguments)?;
                functions::call(function, &all, &mut self.budget)
            }
        };
        called.map_err(failed(at))
    }

    fn base(&mut self, id: Id, optional: bool) -> Answer {
        match self.node(id)? {
            Value::Nil if optional => Err(Stop::Absent),
            base => Ok(base),
        }
    }

    fn slice(&mut self, base: Id, from: Option<Id>, to: Option<Id>, at: u32) -> Answer {
        let base = self.node(base)?;
        let (from, to) = (self.bound(from)?, self.bound(to)?);
        operators::slice(&base, from, to, &mut self.budget).map_err(failed(at))
    }

    fn bound(&mut self, id: Option<Id>) -> Result<Option<i64>, Stop> {
        let Some(id) = id else {
            return Ok(None);
        };
        let bound = self.node(id)?;
        if let Some(index) = bound.index() {
            return Ok(Some(index));
        }
        let text = format!("non-integer slice index {}", bound.type_name());
        Err(failed(self.tree.node(id).at)(text.into()))
    }

    fn map(&mut self, pairs: &[(Id, Id)], at: u32) -> Answer {
        let mut entries = BTreeMap::new();
        for (key, value) in pairs {
            let key = match self.node(*key)? {
                Value::Text(text) => Key::Text(text),
                other => {
                    return Err(failed(at)(format!("cannot use {} as map key", other.type_name()).into()));
                }
            };
            entries.insert(key, self.node(*value)?);
        }
        self.budget.keep(entries.len() as u64).map_err(failed(at))?;
        Map::new(entries).map(|map| Value::Map(Arc::new(map))).map_err(failed(at))
    }

    /// `$env`.
    fn all(&mut self) -> Result<Value, EvalError> {
        self.budget.keep(self.names.len() as u64)?;
        let named = self.names.iter().zip(self.values);
        let entries = named.map(|(name, value)| (Key::Text(name.as_str().into()), value.clone())).collect();
        Map::new(entries).map(|map| Value::Map(Arc::new(map)))
    }
}
