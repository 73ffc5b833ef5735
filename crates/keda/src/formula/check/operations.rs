//! Checks of binary operators, members and slices.

use super::Checker;
use crate::formula::error::FormulaError;
use crate::formula::operators;
use crate::formula::syntax::{Binary, Form, Id};
use crate::formula::types::Type;
use crate::formula::value::Value;

/// How many constant patterns a formula may have: each is kept compiled for as long as the formula.
const MAX_PATTERNS: usize = 16;

impl Checker<'_> {
    pub(super) fn binary(
        &mut self,
        id: Id,
        operator: Binary,
        left: Id,
        right: Id,
        at: u32,
    ) -> Result<Type, FormulaError> {
        let (a, b) = (self.node(left)?, self.node(right)?);
        let found = match operator {
            Binary::Coalesce => Some(a.clone().either(b.clone())),
            Binary::In => membership(&a, &b, at)?,
            _ => result(operator, &a, &b),
        };
        let Some(found) = found else {
            let text = format!("invalid operation: {} (mismatched types {a} and {b})", operator.sign());
            return Err(FormulaError::new(at, text));
        };
        let constant = |id: Id| match &self.tree.node(id).form {
            Form::Constant(value) => Some(value),
            _ => None,
        };
        match (operator, constant(left), constant(right)) {
            (Binary::Modulo, Some(Value::Int(_)), Some(Value::Int(0))) => {
                return Err(FormulaError::new(at, "integer divide by zero"));
            }
            (Binary::Matches, _, Some(Value::Text(text))) => {
                let is_pattern = |(_, form): &&(Id, Form)| matches!(form, Form::Matches(..));
                if self.found.iter().filter(is_pattern).count() >= MAX_PATTERNS {
                    let why = format!("formula has more than {MAX_PATTERNS} patterns");
                    return Err(FormulaError::new(at, why));
                }
                let pattern = operators::pattern(text).map_err(|why| FormulaError::new(at, why))?;
                self.found.push((id, Form::Matches(left, Box::new(pattern))));
            }
            _ => {}
        }
        Ok(found)
    }

    pub(super) fn member(&mut self, base: Id, key: Id, at: u32) -> Result<Type, FormulaError> {
        let (base_type, key_type) = (self.node(base)?, self.node(key)?);
        let name = match &self.tree.node(key).form {
            Form::Constant(Value::Text(name)) => Some(name.clone()),
            _ => None,
        };
        let refused = |text: String| Err(FormulaError::new(at, text));
        match (&base_type, &name) {
            (Type::Any, _) => Ok(Type::Any),
            (Type::All, Some(name)) if self.names.contains_key(&**name) => Ok(Type::Float),
            (Type::All, Some(name)) => refused(format!("unknown name {name}")),
            (Type::Map | Type::All, _) if matches!(key_type, Type::Text | Type::Any) => Ok(Type::Any),
            (Type::Map | Type::All, _) => {
                refused(format!("cannot use {key_type} to get an element from {base_type}"))
            }
            (Type::Groups(item), _) => Ok(Type::Array(item.clone())),
            (Type::Array(item), _) if matches!(key_type, Type::Int | Type::Any) => Ok((**item).clone()),
            (Type::Array(_), _) => {
                refused(format!("array elements can only be selected using an integer (got {key_type})"))
            }
            (_, Some(name)) => refused(format!("type {base_type} has no field {name}")),
            _ => refused(format!("type {base_type}[{key_type}] is undefined")),
        }
    }

    pub(super) fn slice(
        &mut self,
        base: Id,
        from: Option<Id>,
        to: Option<Id>,
        at: u32,
    ) -> Result<Type, FormulaError> {
        let found = self.node(base)?;
        if !matches!(found, Type::Any | Type::Array(_) | Type::Text) {
            return Err(FormulaError::new(at, format!("cannot slice {found}")));
        }
        for bound in [from, to].into_iter().flatten() {
            let kind = self.node(bound)?;
            if !matches!(kind, Type::Any | Type::Int) {
                return Err(FormulaError::new(
                    self.tree.node(bound).at,
                    format!("non-integer slice index {kind}"),
                ));
            }
        }
        Ok(found)
    }
}

/// Whether `in` is possible for these types; `None` if the right operand has no members.
fn membership(needle: &Type, haystack: &Type, at: u32) -> Result<Option<Type>, FormulaError> {
    let refused = |text: String| Err(FormulaError::new(at, text));
    match haystack {
        Type::Any | Type::Groups(_) => Ok(Some(Type::Bool)),
        Type::Map | Type::All if matches!(needle, Type::Text | Type::Any) => Ok(Some(Type::Bool)),
        Type::Map | Type::All => refused(format!("cannot use {needle} as type string in map key")),
        Type::Array(item) if needle.is_comparable_with(item) => Ok(Some(Type::Bool)),
        Type::Array(item) => refused(format!("cannot use {needle} as type {item} in array")),
        _ => Ok(None),
    }
}

/// The result type of an operator for these operand types; `None` if they are invalid. If one of them is unknown,
/// the other decides.
fn result(operator: Binary, a: &Type, b: &Type) -> Option<Type> {
    let unknown = a.is_any() || b.is_any();
    let each = |fits: fn(&Type) -> bool| (a.is_any() || fits(a)) && (b.is_any() || fits(b));
    let is_int = |t: &Type| *t == Type::Int;
    match operator {
        Binary::Equal | Binary::Unequal => a.is_comparable_with(b).then_some(Type::Bool),
        Binary::And | Binary::Or => each(|t| *t == Type::Bool).then_some(Type::Bool),
        Binary::Less | Binary::Greater | Binary::AtMost | Binary::AtLeast => {
            let same = each(Type::is_number)
                || [Type::Text, Type::Time, Type::Span]
                    .iter()
                    .any(|kind| (a.is_any() || a == kind) && (b.is_any() || b == kind));
            same.then_some(Type::Bool)
        }
        Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith => {
            each(|t| *t == Type::Text).then_some(Type::Bool)
        }
        Binary::Range => each(is_int).then(|| Type::Array(Type::Int.into())),
        Binary::Modulo => each(is_int).then_some(Type::Int),
        Binary::Divide | Binary::Power => each(Type::is_number).then_some(Type::Float),
        Binary::Add | Binary::Subtract | Binary::Multiply => match (operator, a, b) {
            (_, Type::Int, Type::Int) => Some(Type::Int),
            _ if a.is_number() && b.is_number() => Some(Type::Float),
            (Binary::Add, Type::Text, Type::Text) => Some(Type::Text),
            (Binary::Add | Binary::Subtract, Type::Time, Type::Span)
            | (Binary::Add, Type::Span, Type::Time) => Some(Type::Time),
            (Binary::Add | Binary::Subtract, Type::Span, Type::Span)
            | (Binary::Subtract, Type::Time, Type::Time) => Some(Type::Span),
            (Binary::Multiply, Type::Span, other) | (Binary::Multiply, other, Type::Span)
                if other.is_number() =>
            {
                Some(Type::Span)
            }
            _ if unknown => {
                let can = |t: &Type| match t {
                    Type::Any | Type::Int | Type::Float | Type::Span => true,
                    Type::Text => operator == Binary::Add,
                    Type::Time => operator != Binary::Multiply,
                    _ => false,
                };
                (can(a) && can(b)).then_some(Type::Any)
            }
            _ => None,
        },
        Binary::In | Binary::Coalesce => None,
    }
}
