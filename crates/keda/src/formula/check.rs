//! Static checks: unknown names and operands of impossible types are refused.

mod calls;
mod operations;

use std::sync::Arc;

use super::NamePlaces;
use super::catalog::{self, Function};
use super::error::FormulaError;
use super::syntax::{Form, Id, Pointer, Tree, Unary};
use super::types::Type;
use super::value::Value;

/// Checks a formula in which `names` are floats, and resolves names.
pub(super) fn check(tree: &mut Tree, names: &NamePlaces<'_>) -> Result<(), FormulaError> {
    let mut checker = Checker {
        tree,
        names,
        types: vec![None; tree.len()],
        locals: Vec::new(),
        predicates: Vec::new(),
        found: Vec::new(),
    };
    checker.node(checker.tree.root)?;
    let found = checker.found;
    for (id, form) in found {
        tree.replace(id, form);
    }
    Ok(())
}

struct Checker<'a> {
    tree: &'a Tree,
    names: &'a NamePlaces<'a>,
    /// Types found so far: a node may have two parents, as `b` in `a < b < c`.
    types: Vec<Option<Type>>,
    /// Variables declared by `let` that are in scope.
    locals: Vec<(Arc<str>, usize, Type)>,
    /// Item types of the enclosing predicates.
    predicates: Vec<Predicate>,
    /// Replacements of nodes.
    found: Vec<(Id, Form)>,
}

struct Predicate {
    item: Type,
    has_index: bool,
    has_accumulator: bool,
}

impl Checker<'_> {
    fn node(&mut self, id: Id) -> Result<Type, FormulaError> {
        if let Some(Some(known)) = self.types.get(id as usize) {
            return Ok(known.clone());
        }
        let found = self.type_of(id)?;
        if let Some(slot) = self.types.get_mut(id as usize) {
            *slot = Some(found.clone());
        }
        Ok(found)
    }

    fn type_of(&mut self, id: Id) -> Result<Type, FormulaError> {
        let tree = self.tree;
        let node = tree.node(id);
        let at = node.at;
        let refused = |text: String| Err(FormulaError::new(at, text));
        Ok(match &node.form {
            Form::Constant(value) => constant(value),
            Form::Name(name) => return self.name(id, name, at),
            Form::Variable(_) => Type::Float,
            Form::Local(_) => Type::Any,
            Form::All => Type::All,
            Form::Function => Type::Function,
            Form::Pointer(pointer) => return self.pointer(*pointer, at),
            Form::Unary(operator, operand) => {
                let operand = self.node(*operand)?;
                match operator {
                    _ if operand.is_any() => match operator {
                        Unary::Not => Type::Bool,
                        _ => Type::Any,
                    },
                    Unary::Not if operand == Type::Bool => Type::Bool,
                    Unary::Minus | Unary::Plus if operand.is_number() => operand,
                    Unary::Minus if operand == Type::Span => operand,
                    _ => {
                        return refused(format!(
                            "invalid operation: {} (mismatched type {operand})",
                            operator.sign()
                        ));
                    }
                }
            }
            Form::Binary(operator, left, right) => return self.binary(id, *operator, *left, *right, at),
            Form::Matches(text, _) => {
                self.node(*text)?;
                Type::Bool
            }
            Form::Chain(inner) => return self.node(*inner),
            Form::Member { base, key, .. } => return self.member(*base, *key, at),
            Form::Slice { base, from, to } => return self.slice(*base, *from, *to, at),
            Form::Method { base, name, arguments, .. } => return self.method(*base, name, arguments, at),
            Form::Call { callee } => {
                let callee = self.node(*callee)?;
                return refused(format!("{callee} is not callable"));
            }
            Form::Apply { function, arguments } => return self.apply(*function, arguments, at),
            Form::Each { each, array, predicate, extra } => {
                return self.each(*each, *array, *predicate, *extra);
            }
            Form::Choice { condition, yes, no } => {
                let (found, at) = (self.node(*condition)?, tree.node(*condition).at);
                if found != Type::Bool && !found.is_any() {
                    let text = format!("non-bool expression (type {found}) used as condition");
                    return Err(FormulaError::new(at, text));
                }
                let yes = self.node(*yes)?;
                yes.either(self.node(*no)?)
            }
            Form::Let { name, name_at, value, body, slot } => {
                self.declare(name, *name_at)?;
                let value = self.node(*value)?;
                self.locals.push((name.clone(), *slot, value));
                let body = self.node(*body);
                self.locals.pop();
                return body;
            }
            Form::Sequence(items) => {
                let mut last = Type::Nil;
                for item in items {
                    last = self.node(*item)?;
                }
                last
            }
            Form::Array(items) => return self.array(items),
            Form::Map(pairs) => {
                for (key, value) in pairs {
                    let found = self.node(*key)?;
                    if found != Type::Text && !found.is_any() {
                        let text = format!("cannot use {found} as map key");
                        return Err(FormulaError::new(tree.node(*key).at, text));
                    }
                    self.node(*value)?;
                }
                Type::Map
            }
        })
    }

    /// Triggers hide functions, declared variables hide both.
    fn name(&mut self, id: Id, name: &Arc<str>, at: u32) -> Result<Type, FormulaError> {
        if let Some((_, slot, known)) = self.locals.iter().rev().find(|(local, ..)| local == name) {
            self.found.push((id, Form::Local(*slot)));
            return Ok(known.clone());
        }
        if &**name == "$env" {
            self.found.push((id, Form::All));
            return Ok(Type::All);
        }
        if let Some(place) = self.names.get(&**name).copied() {
            self.found.push((id, Form::Variable(place)));
            return Ok(Type::Float);
        }
        if catalog::is_known(name) {
            self.found.push((id, Form::Function));
            return Ok(Type::Function);
        }
        Err(FormulaError::new(at, format!("unknown name {name}")))
    }

    fn declare(&self, name: &Arc<str>, at: u32) -> Result<(), FormulaError> {
        let refused = |text: String| Err(FormulaError::new(at, text));
        if self.names.contains_key(&**name) || &**name == "$env" {
            return refused(format!("cannot redeclare {name}"));
        }
        if catalog::is_known(name) {
            return refused(format!("cannot redeclare builtin {name}"));
        }
        if self.locals.iter().any(|(known, ..)| known == name) {
            return refused(format!("cannot redeclare variable {name}"));
        }
        Ok(())
    }

    fn pointer(&self, pointer: Pointer, at: u32) -> Result<Type, FormulaError> {
        match (pointer, self.predicates.last()) {
            (_, None) => Err(FormulaError::new(at, "cannot use pointer accessor outside predicate")),
            (Pointer::Item, Some(predicate)) => Ok(predicate.item.clone()),
            (Pointer::Index, Some(predicate)) if predicate.has_index => Ok(Type::Int),
            (Pointer::Index, Some(_)) => Err(FormulaError::new(at, "unknown pointer #index")),
            (Pointer::Accumulator, Some(predicate)) if predicate.has_accumulator => Ok(Type::Any),
            (Pointer::Accumulator, Some(_)) => Err(FormulaError::new(at, "unknown pointer #acc")),
        }
    }

    /// The type of an array literal: an array of the common type of its items.
    fn array(&mut self, items: &[Id]) -> Result<Type, FormulaError> {
        let mut common: Option<Type> = None;
        for item in items {
            let found = self.node(*item)?;
            common = Some(match common {
                None => found,
                Some(before) if before == found => before,
                Some(_) => Type::Any,
            });
        }
        Ok(Type::Array(common.unwrap_or(Type::Any).into()))
    }

    fn apply(&mut self, function: Function, arguments: &[Id], at: u32) -> Result<Type, FormulaError> {
        let mut types = Vec::with_capacity(arguments.len());
        for argument in arguments {
            types.push(self.node(*argument)?);
        }
        let found = function.check(&types).map_err(|text| FormulaError::new(at, text))?;
        if let (Function::Get, [Type::Array(_), key]) = (function, types.as_slice())
            && !matches!(key, Type::Int | Type::Any)
        {
            return Err(FormulaError::new(at, format!("non-integer slice index {key}")));
        }
        if function == Function::Get
            && let Some(item) = types.first().and_then(Type::item)
        {
            return Ok(item);
        }
        Ok(found)
    }
}

fn constant(value: &Value) -> Type {
    match value {
        Value::Nil => Type::Nil,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Float(_) => Type::Float,
        Value::Text(_) => Type::Text,
        Value::Array(_) => Type::array(),
        Value::Map(_) => Type::Map,
        Value::Span(_) => Type::Span,
        Value::Time(_) => Type::Time,
        Value::Zone(_) => Type::Zone,
    }
}
