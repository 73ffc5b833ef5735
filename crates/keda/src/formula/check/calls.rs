//! Checks of methods and predicate functions.

use std::sync::Arc;

use super::{Checker, Predicate};
use crate::formula::catalog::Each;
use crate::formula::error::FormulaError;
use crate::formula::functions::method_type;
use crate::formula::syntax::Id;
use crate::formula::types::Type;

impl Checker<'_> {
    pub(super) fn method(
        &mut self,
        base: Id,
        name: &Arc<str>,
        arguments: &[Id],
        at: u32,
    ) -> Result<Type, FormulaError> {
        let found = self.node(base)?;
        for argument in arguments {
            self.node(*argument)?;
        }
        match method_type(&found, name) {
            Some(given) => Ok(given),
            None if found.is_any() => Ok(Type::Any),
            None => Err(FormulaError::new(at, format!("type {found} has no method {name}"))),
        }
    }

    pub(super) fn each(
        &mut self,
        each: Each,
        array: Id,
        predicate: Option<Id>,
        extra: Option<Id>,
    ) -> Result<Type, FormulaError> {
        let found = self.node(array)?;
        let Some(item) = found.item() else {
            let text = format!("builtin {} takes only array (got {found})", each.name());
            return Err(FormulaError::new(self.tree.node(array).at, text));
        };
        let given = match predicate {
            Some(predicate) => {
                let has_accumulator = each == Each::Reduce;
                let has_index = has_accumulator || each == Each::Map;
                self.predicates.push(Predicate { item: item.clone(), has_index, has_accumulator });
                let given = self.node(predicate);
                self.predicates.pop();
                let given = given?;
                if each.needs_bool() && given != Type::Bool && !given.is_any() {
                    let text = format!("predicate should return boolean (got {given})");
                    return Err(FormulaError::new(self.tree.node(predicate).at, text));
                }
                Some(given)
            }
            None => {
                if each == Each::Count && item != Type::Bool && !item.is_any() {
                    let text = format!("predicate should return boolean (got {item})");
                    return Err(FormulaError::new(self.tree.node(array).at, text));
                }
                None
            }
        };
        if let Some(extra) = extra {
            let kind = self.node(extra)?;
            if each == Each::SortBy && kind != Type::Text && !kind.is_any() {
                let text = format!("invalid argument for sortBy (type {kind})");
                return Err(FormulaError::new(self.tree.node(extra).at, text));
            }
        }
        Ok(match each {
            Each::All | Each::Any | Each::None | Each::One => Type::Bool,
            Each::Count | Each::FindIndex | Each::FindLastIndex => Type::Int,
            Each::Find | Each::FindLast => item,
            Each::Filter | Each::SortBy => Type::Array(item.into()),
            Each::Map => Type::Array(given.unwrap_or(Type::Any).into()),
            Each::GroupBy => Type::Groups(item.into()),
            Each::Sum => given.unwrap_or(item),
            Each::Reduce => Type::Any,
        })
    }
}
