//! The deserializer at one node.

mod access;

use serde::de::{Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::fault::{Fault, FaultKind, PlacedFault};
use super::words::did_you_mean;
use super::{Context, MAX_REPORTED_PROBLEMS, UnknownFields, address};
use crate::yaml::path::{Step, Trail};
use crate::yaml::problem::shortened;
use crate::yaml::{Diagnostic, Node, NodeKey, NodeValue};
use access::{NodeEnumAccess, NodeMapAccess, NodeSeqAccess};

/// A node with its path.
#[derive(Clone, Copy)]
pub(super) struct NodeDeserializer<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) node: &'a Node,
    pub(super) key: Option<&'a NodeKey>,
    pub(super) trail: &'a Trail<'a>,
}

impl NodeDeserializer<'_> {
    /// Sets the position of an error that has none.
    pub(super) fn blame(&self, fault: Fault) -> Fault {
        // The content of a variant cannot be skipped, so it is skipped with its parent.
        if self.context.is_faulty(self.node) {
            return fault.consequence();
        }
        fault.placed(|kind| {
            let raw = self.context.source.slice(self.node.span);
            let key = kind.field().and_then(|name| self.node.key(name));
            let span = key.map_or_else(|| self.node.place(self.key), |key| key.span);
            let problem = Diagnostic::at(self.context.source, span, kind.message(self.node, raw));
            let mut problem =
                problem.in_path(self.trail.to_string()).maybe_hint(kind.hint(&self.node.value, raw));
            if let FaultKind::Field { name, known } = kind {
                problem = problem.with_unknown_field(name, known);
            }
            let missing = kind.missing();
            let consequence = matches!(kind, FaultKind::Consequence)
                || match missing.map(|name| self.node.step(&Step::Key(name))) {
                    None => self.context.lacks_part_of(self.node),
                    Some(entry) => entry.is_some_and(|(_, node)| self.context.is_faulty(node)),
                };
            PlacedFault { problem, culprit: address(self.node), missing, consequence }
        })
    }

    /// Reports every field of this map that is not among `fields`.
    fn refuse_unknown(&self, entries: &[(NodeKey, Node)], fields: &'static [&'static str]) {
        let unknown = entries.iter().filter(|(key, _)| !fields.contains(&key.name.as_str()));
        let mut problems = self.context.problems.borrow_mut();
        let room = MAX_REPORTED_PROBLEMS.saturating_sub(problems.len());
        for (key, _) in unknown.take(room) {
            let problem = Diagnostic::at(
                self.context.source,
                key.span,
                format!("unknown field `{}`", shortened(&key.name)),
            )
            .in_path(self.trail.to_string())
            .with_unknown_field(&key.name, fields);
            problems.push(problem.maybe_hint(did_you_mean(&key.name, fields)));
        }
    }

    /// Decodes integers as Kubernetes' YAML reader does: `10.0` is 10.
    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.node.value {
            NodeValue::Float(float) if float.fract() == 0.0 && float.abs() < 9e18 => {
                visitor.visit_i64(float as i64)
            }
            _ => self.deserialize_any(visitor),
        }
    }
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.integer(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for NodeDeserializer<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            NodeValue::Null => visitor.visit_unit(),
            NodeValue::Bool(truth) => visitor.visit_bool(*truth),
            NodeValue::Int(integer) => match (i64::try_from(*integer), u64::try_from(*integer)) {
                (_, Ok(integer)) => visitor.visit_u64(integer),
                (Ok(integer), _) => visitor.visit_i64(integer),
                _ => visitor.visit_i128(*integer),
            },
            NodeValue::Float(float) => visitor.visit_f64(*float),
            NodeValue::String(text) => visitor.visit_str(text),
            NodeValue::Seq(items) => {
                let mut items = NodeSeqAccess::new(self, items);
                let value = visitor.visit_seq(&mut items)?;
                items.finish()?;
                Ok(value)
            }
            NodeValue::Map(entries) => visitor.visit_map(NodeMapAccess::new(self, entries, None)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.node.value {
            NodeValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let NodeValue::Map(entries) = &self.node.value else {
            return Err(Fault::expected("a map", &self.node.value));
        };
        if self.context.unknown == UnknownFields::Rejected {
            self.refuse_unknown(entries, fields);
        }
        visitor.visit_map(NodeMapAccess::new(self, entries, Some(fields)))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.node.value {
            NodeValue::String(name) => {
                visitor.visit_enum(NodeEnumAccess { cursor: self, name, key: None, content: None })
            }
            NodeValue::Map(entries) if let [(key, node)] = entries.as_slice() => {
                visitor.visit_enum(NodeEnumAccess {
                    cursor: self,
                    name: &key.name,
                    key: Some(key),
                    content: Some(node),
                })
            }
            found => Err(Fault::expected_one_of(variants, found)),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    forward_to_deserialize_any! {
        bool f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        identifier ignored_any
    }
}
