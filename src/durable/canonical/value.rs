//! The canonical text of anything that can be serialized.

use std::fmt;

use serde::{
    Serialize, Serializer,
    ser::{self, Error as _},
};

use super::{Map, plain_bytes, write_float, write_integer, write_text};

/// Appends the canonical text of a value.
pub fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let start = out.len();
    // Only a map whose keys are no text has none, and no entry of a bundle is one.
    if value.serialize(Canonical(out)).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

struct Canonical<'o>(&'o mut Vec<u8>);

/// A map of which some members are written.
pub(super) struct Members<'o> {
    out: &'o mut Vec<u8>,
    map: Map,
}

impl<'o> Members<'o> {
    fn new(out: &'o mut Vec<u8>, room: usize) -> Self {
        let map = Map::open(out, room);
        Self { out, map }
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), fmt::Error> {
        value.serialize(Canonical(self.out))?;
        self.map.valued(self.out);
        Ok(())
    }

    fn finish(self) -> Result<(), fmt::Error> {
        self.map.close(self.out).map_err(|_| fmt::Error)
    }
}

pub(super) struct Items<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Items<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'[');
        Self { out, first: true }
    }

    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), fmt::Error> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        value.serialize(Canonical(self.out))
    }

    fn finish(self) {
        self.out.push(b']');
    }
}

impl<'o> Serializer for Canonical<'o> {
    type Ok = ();
    type Error = fmt::Error;
    type SerializeSeq = Items<'o>;
    type SerializeTuple = Items<'o>;
    type SerializeTupleStruct = Items<'o>;
    type SerializeTupleVariant = ser::Impossible<(), fmt::Error>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Members<'o>;
    type SerializeStructVariant = ser::Impossible<(), fmt::Error>;

    fn serialize_bool(self, v: bool) -> Result<(), fmt::Error> {
        self.0.extend_from_slice(if v { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, v: i8) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i16(self, v: i16) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i32(self, v: i32) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i64(self, v: i64) -> Result<(), fmt::Error> {
        write_integer(self.0, v);
        Ok(())
    }

    fn serialize_u8(self, v: u8) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_u16(self, v: u16) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_u32(self, v: u32) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_u64(self, v: u64) -> Result<(), fmt::Error> {
        match i64::try_from(v) {
            Ok(v) => self.serialize_i64(v),
            #[expect(clippy::cast_precision_loss, reason = "as PHP reads it")]
            Err(_) => self.serialize_f64(v as f64),
        }
    }

    fn serialize_f32(self, v: f32) -> Result<(), fmt::Error> {
        self.serialize_f64(v.into())
    }

    fn serialize_f64(self, v: f64) -> Result<(), fmt::Error> {
        if v.is_finite() {
            write_float(self.0, v);
            return Ok(());
        }
        self.serialize_unit()
    }

    fn serialize_char(self, v: char) -> Result<(), fmt::Error> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, v: &str) -> Result<(), fmt::Error> {
        write_text(self.0, v);
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), fmt::Error> {
        Err(fmt::Error::custom("bytes have no text"))
    }

    fn serialize_none(self) -> Result<(), fmt::Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), fmt::Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), fmt::Error> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), fmt::Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), fmt::Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        let mut map = Members::new(self.0, 1);
        ser::SerializeStruct::serialize_field(&mut map, variant, value)?;
        map.finish()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'o>, fmt::Error> {
        Ok(Items::new(self.0))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'o>, fmt::Error> {
        Ok(Items::new(self.0))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'o>, fmt::Error> {
        Ok(Items::new(self.0))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, fmt::Error> {
        Err(fmt::Error::custom("not in a bundle"))
    }

    fn serialize_map(self, room: Option<usize>) -> Result<Members<'o>, fmt::Error> {
        Ok(Members::new(self.0, room.unwrap_or(64)))
    }

    fn serialize_struct(self, _: &'static str, room: usize) -> Result<Members<'o>, fmt::Error> {
        Ok(Members::new(self.0, room))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, fmt::Error> {
        Err(fmt::Error::custom("not in a bundle"))
    }
}

impl ser::SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        let key = key.as_bytes();
        self.map.key(self.out, key, plain_bytes(key) == key.len());
        self.value(value)
    }

    fn end(self) -> Result<(), fmt::Error> {
        self.finish()
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), fmt::Error> {
        let before = self.out.len();
        self.map.next(self.out);
        let at = self.out.len();
        key.serialize(Canonical(self.out))?;
        // Keys are sorted by what they say, not by how that is escaped.
        match &self.out[at..] {
            [b'"', inside @ .., b'"'] if !inside.contains(&b'\\') => {
                let length = inside.len();
                self.map.named(self.out, length, true);
            }
            quoted => {
                let key: String = serde_json::from_slice(quoted).map_err(fmt::Error::custom)?;
                self.out.truncate(before);
                self.map.key(self.out, key.as_bytes(), false);
            }
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        self.value(value)
    }

    fn end(self) -> Result<(), fmt::Error> {
        self.finish()
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Items<'_> {
            type Ok = ();
            type Error = fmt::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), fmt::Error> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

items!(SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field);
