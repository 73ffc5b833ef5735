//! Serde accessors of lists, maps and enums.

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::NodeDeserializer;
use crate::yaml::decode::address;
use crate::yaml::decode::fault::{Fault, PlacedFault};
use crate::yaml::path::Trail;
use crate::yaml::{Diagnostic, Node, NodeKey, NodeValue};

/// The items of a list.
pub(super) struct NodeSeqAccess<'a> {
    cursor: NodeDeserializer<'a>,
    nodes: &'a [Node],
    next: usize,
}

impl<'a> NodeSeqAccess<'a> {
    pub(super) fn new(cursor: NodeDeserializer<'a>, nodes: &'a [Node]) -> Self {
        Self { cursor, nodes, next: 0 }
    }

    /// Rejects items that the type does not have.
    pub(super) fn finish(self) -> Result<(), Fault> {
        if self.next < self.nodes.len() { Err(Fault::length(self.nodes.len(), self.next)) } else { Ok(()) }
    }
}

impl<'de> SeqAccess<'de> for &mut NodeSeqAccess<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let (index, node) = loop {
            let Some(node) = self.nodes.get(self.next) else { return Ok(None) };
            self.next += 1;
            if !self.cursor.context.is_faulty(node) {
                break (self.next - 1, node);
            }
        };
        let trail = Trail::Index(self.cursor.trail, index);
        let cursor = NodeDeserializer { node, key: None, trail: &trail, ..self.cursor };
        seed.deserialize(cursor).map(Some).map_err(|fault| cursor.blame(fault))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.nodes.len().saturating_sub(self.next))
    }
}

/// The entries of a map, or of a struct with the given fields.
pub(super) struct NodeMapAccess<'a> {
    cursor: NodeDeserializer<'a>,
    rest: std::slice::Iter<'a, (NodeKey, Node)>,
    fields: Option<&'static [&'static str]>,
    value: Option<&'a (NodeKey, Node)>,
}

impl<'a> NodeMapAccess<'a> {
    pub(super) fn new(
        cursor: NodeDeserializer<'a>,
        entries: &'a [(NodeKey, Node)],
        fields: Option<&'static [&'static str]>,
    ) -> Self {
        Self { cursor, rest: entries.iter(), fields, value: None }
    }

    /// Whether an entry is decoded. Unknown fields are reported elsewhere; a field without a value is absent, as in
    /// Kubernetes.
    fn wanted(&self, (key, node): &(NodeKey, Node)) -> bool {
        let faulty = self.cursor.context.is_faulty(node);
        !faulty
            && self
                .fields
                .is_none_or(|fields| fields.contains(&key.name.as_str()) && node.value != NodeValue::Null)
    }
}

impl<'de> MapAccess<'de> for NodeMapAccess<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        while let Some(entry) = self.rest.next() {
            if self.wanted(entry) {
                self.value = Some(entry);
                let name = KeyDeserializer { cursor: self.cursor, key: &entry.0, node: &entry.1 };
                return seed.deserialize(name).map(Some).map_err(|fault| name.blame(fault));
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, node)) = self.value.take() else {
            return Err(serde::de::Error::custom("a value was read before its key"));
        };
        let trail = Trail::Key(self.cursor.trail, &key.name);
        let cursor = NodeDeserializer { node, key: Some(key), trail: &trail, ..self.cursor };
        seed.deserialize(cursor).map_err(|fault| cursor.blame(fault))
    }
}

/// Decodes a key; numbers and booleans are parsed from its text.
#[derive(Clone, Copy)]
struct KeyDeserializer<'a> {
    cursor: NodeDeserializer<'a>,
    key: &'a NodeKey,
    /// The node to skip if the key is wrong.
    node: &'a Node,
}

impl KeyDeserializer<'_> {
    fn blame(&self, fault: Fault) -> Fault {
        fault.placed(|kind| {
            let name = Node { span: self.key.span, value: NodeValue::String(self.key.name.clone()) };
            let problem = Diagnostic::at(self.cursor.context.source, name.span, kind.message(&name, ""));
            let problem =
                problem.in_path(self.cursor.trail.to_string()).maybe_hint(kind.hint(&name.value, ""));
            PlacedFault { problem, culprit: address(self.node), missing: None, consequence: false }
        })
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match self.key.name.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => visitor.visit_str(&self.key.name),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for KeyDeserializer<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(&self.key.name)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Self { cursor, key, .. } = self;
        visitor.visit_enum(NodeEnumAccess { cursor, name: &key.name, key: Some(key), content: None })
    }

    parsed! {
        deserialize_bool visit_bool
        deserialize_i8 visit_i64 deserialize_i16 visit_i64 deserialize_i32 visit_i64 deserialize_i64 visit_i64
        deserialize_u8 visit_u64 deserialize_u16 visit_u64 deserialize_u32 visit_u64 deserialize_u64 visit_u64
        deserialize_f32 visit_f64 deserialize_f64 visit_f64
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// An enum: a name, or a map with the name as its only key.
pub(super) struct NodeEnumAccess<'a> {
    pub(super) cursor: NodeDeserializer<'a>,
    pub(super) name: &'a str,
    pub(super) key: Option<&'a NodeKey>,
    pub(super) content: Option<&'a Node>,
}

impl NodeEnumAccess<'_> {
    fn content<T>(&self, read: impl FnOnce(NodeDeserializer<'_>) -> Result<T, Fault>) -> Result<T, Fault> {
        let Some(node) = self.content else {
            return Err(Fault::expected("a map", &self.cursor.node.value));
        };
        let trail = Trail::Key(self.cursor.trail, self.name);
        let cursor = NodeDeserializer { node, key: self.key, trail: &trail, ..self.cursor };
        read(cursor).map_err(|fault| cursor.blame(fault))
    }
}

impl<'de> EnumAccess<'de> for NodeEnumAccess<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let value = match self.key {
            Some(key) => {
                let name = KeyDeserializer { cursor: self.cursor, key, node: self.cursor.node };
                seed.deserialize(name).map_err(|fault| name.blame(fault))
            }
            None => seed.deserialize(serde::de::value::StrDeserializer::new(self.name)),
        };
        Ok((value?, self))
    }
}

impl<'de> VariantAccess<'de> for NodeEnumAccess<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.content {
            Some(node) if node.value != NodeValue::Null => {
                self.content(|cursor| Err(Fault::expected("no value", &cursor.node.value)))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        self.content(|cursor| seed.deserialize(cursor))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Fault> {
        self.content(|cursor| cursor.deserialize_tuple(length, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.content(|cursor| cursor.deserialize_struct("", fields, visitor))
    }
}
