//! Predicate functions over the items of an array.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Answer, Run, Scope, Stop, failed};
use crate::formula::catalog::Each;
use crate::formula::functions::{is_descending, sort_by_keys};
use crate::formula::operators;
use crate::formula::syntax::{Binary, Form, Id};
use crate::formula::value::{Key, List, Map, Value};

impl Run<'_> {
    #[inline(never)]
    pub(super) fn each(
        &mut self,
        each: Each,
        array: Id,
        predicate: Option<Id>,
        extra: Option<Id>,
        at: u32,
    ) -> Answer {
        if each == Each::Sum
            && predicate.is_none()
            && let Form::Array(items) = &self.tree.node(array).form
            && items.len() > 1
            && !items.iter().all(|item| self.is_literal(*item))
        {
            return self.added(items, at);
        }
        let list = match self.node(array)? {
            Value::Array(list) => list,
            other => {
                let text = format!("builtin {} takes only array (got {})", each.name(), other.type_name());
                return Err(failed(self.tree.node(array).at)(text.into()));
            }
        };
        let extra = match extra {
            Some(extra) => Some(self.node(extra)?),
            None => None,
        };
        self.scopes.push(Scope::default());
        let found = self.over(each, &list, predicate, extra, at);
        self.scopes.pop();
        found
    }

    /// expr optimizes `sum([a, b, c])` to `a + (b + c)`; the order decides the last bit of a float.
    fn added(&mut self, items: &[Id], at: u32) -> Answer {
        let mut items = self.nodes(items)?.into_iter().rev();
        let mut sum = items.next().unwrap_or_default();
        for item in items {
            sum = operators::binary(Binary::Add, &item, &sum, &mut self.budget).map_err(failed(at))?;
        }
        Ok(sum)
    }

    /// Whether expr folds a node to a literal. An array of literals is a constant, whose items are added one by one.
    fn is_literal(&self, id: Id) -> bool {
        match &self.tree.node(id).form {
            Form::Constant(value) => !matches!(value, Value::Nil),
            Form::Unary(_, operand) => self.is_literal(*operand),
            Form::Binary(
                Binary::Add
                | Binary::Subtract
                | Binary::Multiply
                | Binary::Divide
                | Binary::Modulo
                | Binary::Power,
                left,
                right,
            ) => self.is_literal(*left) && self.is_literal(*right),
            _ => false,
        }
    }

    fn over(
        &mut self,
        each: Each,
        list: &Arc<List>,
        predicate: Option<Id>,
        extra: Option<Value>,
        at: u32,
    ) -> Answer {
        let items = list.items();
        match each {
            Each::All => Ok(Value::Bool(self.first(items, predicate, false, at)?.is_none())),
            Each::None => Ok(Value::Bool(self.first(items, predicate, true, at)?.is_none())),
            Each::Any => Ok(Value::Bool(self.first(items, predicate, true, at)?.is_some())),
            Each::One => Ok(Value::Bool(self.matching(items, predicate, at)?.len() == 1)),
            Each::Count => Ok(Value::Int(self.matching(items, predicate, at)?.len() as i64)),
            Each::Find | Each::FindIndex => {
                let found = self.first(items, predicate, true, at)?;
                Ok(found.map_or(Value::Nil, |index| item_or_index(each == Each::Find, items, index)))
            }
            Each::FindLast | Each::FindLastIndex => {
                let found = self.last(items, predicate, at)?;
                Ok(found.map_or(Value::Nil, |index| item_or_index(each == Each::FindLast, items, index)))
            }
            Each::Filter => {
                let matching = self.matching(items, predicate, at)?;
                let kept = matching.into_iter().filter_map(|index| items.get(index).cloned()).collect();
                self.budget.array(kept).map_err(failed(at))
            }
            Each::Map => {
                let mut mapped = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    mapped.push(self.predicate(predicate, index, item)?);
                }
                self.budget.array(mapped).map_err(failed(at))
            }
            Each::Sum => {
                let mut sum = Value::Int(0);
                for (index, item) in items.iter().enumerate() {
                    let item = self.predicate(predicate, index, item)?;
                    sum =
                        operators::binary(Binary::Add, &item, &sum, &mut self.budget).map_err(failed(at))?;
                }
                Ok(sum)
            }
            Each::GroupBy => self.group(items, predicate, at),
            Each::SortBy => {
                let descending = extra.map(|order| is_descending(&order)).transpose().map_err(failed(at))?;
                let mut keyed = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    keyed.push((self.predicate(predicate, index, item)?, item.clone()));
                }
                sort_by_keys(keyed, descending.unwrap_or(false), &mut self.budget).map_err(failed(at))
            }
            Each::Reduce => self.reduce(items, predicate, extra, at),
        }
    }

    /// The result of the predicate for an item; without a predicate the item itself.
    fn predicate(&mut self, predicate: Option<Id>, index: usize, item: &Value) -> Answer {
        let Some(predicate) = predicate else {
            return Ok(item.clone());
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.item = item.clone();
            scope.index = index as i64;
        }
        self.node(predicate)
    }

    fn test(&mut self, predicate: Option<Id>, index: usize, item: &Value, at: u32) -> Result<bool, Stop> {
        self.budget.spend(1).map_err(failed(at))?;
        match self.predicate(predicate, index, item)? {
            Value::Bool(flag) => Ok(flag),
            other => {
                let text = format!("predicate should return boolean (got {})", other.type_name());
                Err(failed(at)(text.into()))
            }
        }
    }

    /// The first item for which the predicate returns `wanted`.
    fn first(
        &mut self,
        items: &[Value],
        predicate: Option<Id>,
        wanted: bool,
        at: u32,
    ) -> Result<Option<usize>, Stop> {
        for (index, item) in items.iter().enumerate() {
            if self.test(predicate, index, item, at)? == wanted {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn last(&mut self, items: &[Value], predicate: Option<Id>, at: u32) -> Result<Option<usize>, Stop> {
        for (index, item) in items.iter().enumerate().rev() {
            if self.test(predicate, index, item, at)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn matching(&mut self, items: &[Value], predicate: Option<Id>, at: u32) -> Result<Vec<usize>, Stop> {
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if self.test(predicate, index, item, at)? {
                found.push(index);
            }
        }
        Ok(found)
    }

    fn group(&mut self, items: &[Value], predicate: Option<Id>, at: u32) -> Answer {
        let mut groups: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let key = self.predicate(predicate, index, item)?;
            let key = Key::of(&key).ok_or_else(|| {
                failed(at)(format!("cannot use {} as a key for groupBy", key.type_name()).into())
            })?;
            groups.entry(key).or_default().push(item.clone());
        }
        let mut entries = BTreeMap::new();
        for (key, group) in groups {
            entries.insert(key, self.budget.array(group).map_err(failed(at))?);
        }
        Map::groups(entries).map(|map| Value::Map(Arc::new(map))).map_err(failed(at))
    }

    fn reduce(&mut self, items: &[Value], predicate: Option<Id>, extra: Option<Value>, at: u32) -> Answer {
        let (mut accumulator, skipped) = match (extra, items.first()) {
            (Some(start), _) => (start, 0),
            (None, Some(first)) => (first.clone(), 1),
            (None, None) => {
                return Err(failed(at)("reduce of empty array with no initial value".into()));
            }
        };
        for (index, item) in items.iter().enumerate().skip(skipped) {
            if let Some(scope) = self.scopes.last_mut() {
                scope.accumulator = accumulator;
            }
            accumulator = self.predicate(predicate, index, item)?;
        }
        Ok(accumulator)
    }
}

/// The item, or its index.
fn item_or_index(item: bool, items: &[Value], index: usize) -> Value {
    if item { items.get(index).cloned().unwrap_or_default() } else { Value::Int(index as i64) }
}
