//! A serializer that turns each field into a call of a [`Report`].

use super::{Group, Report, Value};
use crate::ids::PeerId;
use alloc::string::{String, ToString};
use core::fmt;
use serde::ser::{self, Impossible, Serialize};

/// Why statistics cannot be walked.
#[derive(Debug)]
pub(super) struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ser::Error for Unfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl core::error::Error for Unfit {}

fn unfit<T>(what: &str) -> Result<T, Unfit> {
    Err(Unfit(what.into()))
}

/// The outermost struct or map: its fields are the report's own, without a group around them.
pub(super) struct Root<'a>(pub(super) &'a mut dyn Report);

/// A value under a name.
struct Named<'a> {
    name: &'a str,
    to: &'a mut dyn Report,
}

/// A group that is open.
pub(super) struct Open<'a> {
    to: &'a mut dyn Report,
    key: String,
    closes: bool,
}

impl Open<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Unfit> {
        value.serialize(Named { name, to: &mut *self.to })
    }

    fn finish(self) -> Result<(), Unfit> {
        if self.closes {
            self.to.close();
        }
        Ok(())
    }
}

impl<'a> Named<'a> {
    fn put(self, value: Value<'_>) -> Result<(), Unfit> {
        self.to.value(self.name, value);
        Ok(())
    }

    fn open(self, group: Group) -> Result<Open<'a>, Unfit> {
        self.to.open(self.name, group);
        Ok(Open { to: self.to, key: String::new(), closes: true })
    }
}

impl ser::SerializeStruct for Open<'_> {
    type Ok = ();
    type Error = Unfit;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        self.field(key, value)
    }

    fn end(self) -> Result<(), Unfit> {
        self.finish()
    }
}

impl ser::SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Unfit;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unfit> {
        self.key = key.serialize(Key)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
        let key = core::mem::take(&mut self.key);
        self.field(&key, value)
    }

    fn end(self) -> Result<(), Unfit> {
        self.finish()
    }
}

/// Elements of a list have no names.
macro_rules! elements {
    ($($of:ident::$method:ident),+) => {$(
        impl ser::$of for Open<'_> {
            type Ok = ();
            type Error = Unfit;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
                self.field("", value)
            }

            fn end(self) -> Result<(), Unfit> {
                self.finish()
            }
        }
    )+};
}

elements!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field
);

/// Serializer methods for kinds of values that statistics do not have.
macro_rules! never {
    ($ok:ty, $($method:ident($($argument:ty),*);)+) => {$(
        fn $method(self, $(_: $argument),*) -> Result<$ok, Unfit> {
            unfit(stringify!($method))
        }
    )+};
}

macro_rules! put {
    ($($method:ident($from:ty) => $value:expr;)+) => {$(
        fn $method(self, value: $from) -> Result<(), Unfit> {
            let make: fn($from) -> Value<'static> = $value;
            self.put(make(value))
        }
    )+};
}

impl<'a> ser::Serializer for Named<'a> {
    type Ok = ();
    type Error = Unfit;
    type SerializeSeq = Open<'a>;
    type SerializeTuple = Open<'a>;
    type SerializeTupleStruct = Open<'a>;
    type SerializeTupleVariant = Impossible<(), Unfit>;
    type SerializeMap = Open<'a>;
    type SerializeStruct = Open<'a>;
    type SerializeStructVariant = Impossible<(), Unfit>;

    put! {
        serialize_bool(bool) => Value::Flag;
        serialize_u8(u8) => |n| Value::Count(n.into());
        serialize_u16(u16) => |n| Value::Count(n.into());
        serialize_u32(u32) => |n| Value::Count(n.into());
        serialize_u64(u64) => Value::Count;
        serialize_i8(i8) => |n| Value::Integer(n.into());
        serialize_i16(i16) => |n| Value::Integer(n.into());
        serialize_i32(i32) => |n| Value::Integer(n.into());
        serialize_i64(i64) => Value::Integer;
        serialize_f32(f32) => |x| Value::Number(x.into());
        serialize_f64(f64) => Value::Number;
    }
    never! { (), serialize_char(char); serialize_bytes(&[u8]); }

    fn serialize_str(self, text: &str) -> Result<(), Unfit> {
        self.put(Value::Text(text))
    }

    fn serialize_none(self) -> Result<(), Unfit> {
        self.put(Value::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unfit> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unfit> {
        self.put(Value::Nothing)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Unfit> {
        self.put(Value::Nothing)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Unfit> {
        self.put(Value::Text(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        if name != PeerId::NAME {
            return value.serialize(self);
        }
        let number = value.serialize(Key)?.parse().map(PeerId);
        number.map_or_else(|_| unfit("a peer's number"), |peer| self.put(Value::Peer(peer)))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        let mut open = self.open(Group::Map)?;
        open.field(variant, value)?;
        open.finish()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'a>, Unfit> {
        self.open(Group::List)
    }

    fn serialize_tuple(self, _: usize) -> Result<Open<'a>, Unfit> {
        self.open(Group::List)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Open<'a>, Unfit> {
        self.open(Group::List)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Unfit>, Unfit> {
        unfit("a variant with several values")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'a>, Unfit> {
        self.open(Group::Map)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'a>, Unfit> {
        self.open(Group::Map)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Unfit>, Unfit> {
        unfit("a variant with named values")
    }
}

/// A serializer that takes only some kinds of values.
macro_rules! only {
    ($serializer:ty, $ok:ty; $($struct:ty, $map:ty)?; { $($method:item)* }; $($never:ident($($argument:ty),*);)*) => {
        impl<'a> ser::Serializer for $serializer {
            type Ok = $ok;
            type Error = Unfit;
            type SerializeSeq = Impossible<$ok, Unfit>;
            type SerializeTuple = Impossible<$ok, Unfit>;
            type SerializeTupleStruct = Impossible<$ok, Unfit>;
            type SerializeTupleVariant = Impossible<$ok, Unfit>;
            $(type SerializeMap = $map;
            type SerializeStruct = $struct;)?
            type SerializeStructVariant = Impossible<$ok, Unfit>;

            $($method)*
            never! { $ok, $($never($($argument),*);)* serialize_char(char); serialize_bytes(&[u8]);
                serialize_none(); serialize_unit(); serialize_unit_struct(&'static str);
                serialize_bool(bool); serialize_i8(i8); serialize_i16(i16); serialize_i32(i32);
                serialize_i64(i64); serialize_f32(f32); serialize_f64(f64); }

            fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<$ok, Unfit> {
                value.serialize(self)
            }
            fn serialize_newtype_struct<T: Serialize + ?Sized>(
                self, _: &'static str, value: &T,
            ) -> Result<$ok, Unfit> {
                value.serialize(self)
            }
            fn serialize_newtype_variant<T: Serialize + ?Sized>(
                self, _: &'static str, _: u32, _: &'static str, _: &T,
            ) -> Result<$ok, Unfit> {
                unfit("a variant")
            }
            fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Unfit> {
                unfit("a list")
            }
            fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Unfit> {
                unfit("a list")
            }
            fn serialize_tuple_struct(
                self, _: &'static str, _: usize,
            ) -> Result<Self::SerializeTupleStruct, Unfit> {
                unfit("a list")
            }
            fn serialize_tuple_variant(
                self, _: &'static str, _: u32, _: &'static str, _: usize,
            ) -> Result<Self::SerializeTupleVariant, Unfit> {
                unfit("a variant")
            }
            fn serialize_struct_variant(
                self, _: &'static str, _: u32, _: &'static str, _: usize,
            ) -> Result<Self::SerializeStructVariant, Unfit> {
                unfit("a variant")
            }
        }
    };
}

only!(Root<'a>, (); Open<'a>, Open<'a>; {
    fn serialize_map(self, _: Option<usize>) -> Result<Open<'a>, Unfit> {
        Ok(Open { to: self.0, key: String::new(), closes: false })
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'a>, Unfit> {
        Ok(Open { to: self.0, key: String::new(), closes: false })
    }
}; serialize_u8(u8); serialize_u16(u16); serialize_u32(u32); serialize_u64(u64);
   serialize_str(&str); serialize_unit_variant(&'static str, u32, &'static str););

/// Reads the key of a map, or the number inside a newtype, as text.
struct Key;

only!(Key, String; Impossible<String, Unfit>, Impossible<String, Unfit>; {
    fn serialize_u8(self, value: u8) -> Result<String, Unfit> { Ok(value.to_string()) }
    fn serialize_u16(self, value: u16) -> Result<String, Unfit> { Ok(value.to_string()) }
    fn serialize_u32(self, value: u32) -> Result<String, Unfit> { Ok(value.to_string()) }
    fn serialize_u64(self, value: u64) -> Result<String, Unfit> { Ok(value.to_string()) }
    fn serialize_str(self, value: &str) -> Result<String, Unfit> { Ok(value.into()) }
    fn serialize_unit_variant(
        self, _: &'static str, _: u32, variant: &'static str,
    ) -> Result<String, Unfit> { Ok(variant.into()) }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Unfit> { unfit("a map") }
    fn serialize_struct(
        self, _: &'static str, _: usize,
    ) -> Result<Self::SerializeStruct, Unfit> { unfit("a struct") }
};);
