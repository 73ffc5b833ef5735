//! The interface of serde to the splitter: what each type of serde's data model adds to the shape and the leaves.

use std::fmt::{Display, Write as _};

use engine::nanoseconds;
use serde::ser::{self, Serialize};
use serde_json::Error;

use super::{NextValue, Splitter};
use crate::history::leaf::Leaf;

/// The members of an array or object.
pub(in crate::history) struct Members<'s, 'a> {
    splitter: &'s mut Splitter<'a>,
    is_first: bool,
    close: &'static [u8],
}

impl<'a> Splitter<'a> {
    fn open<'s>(&'s mut self, open: &[u8], close: &'static [u8]) -> Members<'s, 'a> {
        if !std::mem::take(&mut self.is_open) {
            self.write(open);
        }
        Members { splitter: self, is_first: true, close }
    }

    /// Opens the object of an enum's variant that has content.
    fn open_variant<'s>(
        &'s mut self,
        variant: &'static str,
        open: &[u8],
        close: &'static [u8],
    ) -> Members<'s, 'a> {
        self.write(b"{");
        self.key(true, variant);
        self.open(open, close)
    }
}

impl Members<'_, '_> {
    fn next(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.splitter.write(b",");
        }
    }

    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.next();
        value.serialize(&mut *self.splitter)
    }

    fn field(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let is_first = std::mem::take(&mut self.is_first);
        self.splitter.key(is_first, key);
        value.serialize(&mut *self.splitter)
    }

    fn close(self) {
        self.splitter.write(self.close);
    }
}

/// Methods for integers.
macro_rules! integers {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<(), Error> {
            self.integer(value);
            Ok(())
        })*
    };
}

impl<'s, 'a> ser::Serializer for &'s mut Splitter<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'s, 'a>;
    type SerializeTuple = Members<'s, 'a>;
    type SerializeTupleStruct = Members<'s, 'a>;
    type SerializeTupleVariant = Members<'s, 'a>;
    type SerializeMap = Members<'s, 'a>;
    type SerializeStruct = Members<'s, 'a>;
    type SerializeStructVariant = Members<'s, 'a>;

    integers!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128
    );

    /// Times and durations are taken as numbers. A type such as `IpAddr`, which has another form for this, must not be in a pass.
    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.quoted_key(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        let text = serde_json::to_string(&value)?;
        match Leaf::of_number(&text) {
            Some(leaf) if !self.is_key() => self.push(leaf),
            _ => self.quoted_key(text.as_bytes()),
        }
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        if value.is_finite() && !self.is_key() {
            self.push(Leaf::Float(value.to_bits()));
        } else {
            self.quoted_key(serde_json::to_string(&value)?.as_bytes());
        }
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.string(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.string(value);
        Ok(())
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        let mut printed = std::mem::take(&mut self.buffers.printed);
        printed.clear();
        // Printing into a string cannot fail.
        let _ = write!(printed, "{value}");
        self.string(&printed);
        self.buffers.printed = printed;
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.write(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.string(variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let next = match name {
            nanoseconds::TIME => NextValue::Time,
            nanoseconds::DURATION => NextValue::Duration,
            _ => return value.serialize(self),
        };
        self.write(b"\"");
        self.serialize_as(next, value)?;
        self.write(b"\"");
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut members = self.open(b"{", b"}");
        members.field(variant, value)?;
        members.close();
        Ok(())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Members<'s, 'a>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Members<'s, 'a>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'s, 'a>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'s, 'a>, Error> {
        Ok(self.open_variant(variant, b"[", b"]}"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Members<'s, 'a>, Error> {
        Ok(self.open(b"{", b"}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'s, 'a>, Error> {
        Ok(self.open(b"{", b"}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'s, 'a>, Error> {
        Ok(self.open_variant(variant, b"{", b"}}"))
    }
}

/// Implementations for what has elements.
macro_rules! elements {
    ($($trait:ident $method:ident),*) => {
        $(impl ser::$trait for Members<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        })*
    };
}

/// Implementations for what has named fields.
macro_rules! fields {
    ($($trait:ident),*) => {
        $(impl ser::$trait for Members<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        })*
    };
}

elements!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);
fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Members<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.next();
        self.splitter.serialize_as(NextValue::Key, key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.splitter.write(b":");
        value.serialize(&mut *self.splitter)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}
