//! JSON the engine wrote, read without trust: a key that is missing, null or of another kind
//! than expected is "no value", never an error for its neighbours.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Deref};

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{
    Deserialize, Deserializer,
    de::{
        self, DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};
use serde_json::{Value, value::RawValue};

use crate::db::plain_time;

/// Declares a newtype over `Option<T>` that takes what its visitor accepts and ignores the rest.
macro_rules! loose {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? ($inner:ty) { $($accept:tt)* })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name $(<$life>)? (pub Option<$inner>);

        impl $(<$life>)? Deref for $name $(<$life>)? {
            type Target = Option<$inner>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<'de $(: $life, $life)?> Deserialize<'de> for $name $(<$life>)? {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Taker;

                impl<'de> Visitor<'de> for Taker {
                    type Value = loose!(@taken $name $($life)?);

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("anything")
                    }

                    loose!(@rest $name $($accept)*);
                }

                deserializer.deserialize_any(Taker)
            }
        }
    )+};

    (@taken $name:ident) => { $name };
    (@taken $name:ident $life:lifetime) => { $name<'de> };

    // What is accepted is written out by the type; whatever is left is drained and forgotten.
    (@rest $name:ident $($accept:item)*) => {
        $($accept)*

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok($name(None))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($name(None))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok($name(None))
        }
    };
}

loose! {
    /// A non-empty string.
    Text(String) {
        fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
            Ok(Text((!v.is_empty()).then(|| v.to_owned())))
        }
        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Text(None))
        }
        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Text(None))
        }
        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Text(None))
        }
        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Text(None))
        }
    }

    /// The same, left where it stands unless it holds escapes.
    Str<'a>(Cow<'a, str>) {
        fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Self::Value, E> {
            Ok(Str((!v.is_empty()).then_some(Cow::Borrowed(v))))
        }
        fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
            Ok(Str((!v.is_empty()).then(|| Cow::Owned(v.to_owned()))))
        }
        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Str(None))
        }
        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Str(None))
        }
        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Str(None))
        }
        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Str(None))
        }
    }

    /// An integer, or a numeric string as old rows hold it.
    Int(Number) {
        fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
            Ok(Int(v.trim().parse().ok().map(Number::Quoted)))
        }
        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Int(None))
        }
        fn visit_i64<E: de::Error>(self, v: i64) -> Result<Self::Value, E> {
            Ok(Int(Some(Number::Plain(v))))
        }
        fn visit_u64<E: de::Error>(self, v: u64) -> Result<Self::Value, E> {
            Ok(Int(i64::try_from(v).ok().map(Number::Plain)))
        }
        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Int(None))
        }
    }

    /// A boolean and nothing else.
    Flag(bool) {
        fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Flag(None))
        }
        fn visit_bool<E: de::Error>(self, v: bool) -> Result<Self::Value, E> {
            Ok(Flag(Some(v)))
        }
        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Flag(None))
        }
        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Flag(None))
        }
        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Flag(None))
        }
    }

    /// A moment in any of the forms the engine writes into JSON; all are absolute.
    Time(DateTime<Utc>) {
        fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
            Ok(Time(moment(v)))
        }
        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Time(None))
        }
        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Time(None))
        }
        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Time(None))
        }
        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Time(None))
        }
    }
}

impl Str<'_> {
    pub fn owned(&self) -> Option<String> {
        self.as_deref().map(str::to_owned)
    }
}

/// How an integer was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Plain(i64),
    Quoted(i64),
}

impl Int {
    /// Quoted or not.
    pub fn get(&self) -> Option<i64> {
        self.0.map(|(Number::Plain(n) | Number::Quoted(n))| n)
    }

    /// Only where the engine's own reader takes no quoted number.
    pub fn strict(&self) -> Option<i64> {
        match self.0 {
            Some(Number::Plain(n)) => Some(n),
            _ => None,
        }
    }
}

/// Any JSON but null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Any(pub Option<Value>);

impl Deref for Any {
    type Target = Option<Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self((!value.is_null()).then_some(value)))
    }
}

/// Any JSON but null, as text: for what every event repeats and only one reading is asked of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raw(pub Option<Box<str>>);

impl Raw {
    /// A column's text; what is not JSON has no value.
    pub fn of_column(text: Option<String>) -> Self {
        Self(
            text.filter(|text| text != "null")
                .map(String::into_boxed_str),
        )
    }

    pub fn of_value(value: &Value) -> Self {
        Self((!value.is_null()).then(|| value.to_string().into()))
    }

    pub fn value(&self) -> Option<Value> {
        Verbatim::of(self).value()
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
        Ok(Self((&*text != "null").then_some(text)))
    }
}

/// The same, left where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Verbatim<'a>(pub Option<&'a str>);

impl<'a> Verbatim<'a> {
    pub fn of(raw: &'a Raw) -> Self {
        Self(raw.0.as_deref())
    }

    pub fn value(self) -> Option<Value> {
        serde_json::from_str(self.0?).ok()
    }

    /// The same if it is a list or an object.
    #[must_use]
    pub fn collection(self) -> Self {
        self.starting_with(&['[', '{'])
    }

    /// The same if it is text, a list or an object: what may hold an encoded payload.
    #[must_use]
    pub fn payload(self) -> Self {
        self.starting_with(&['"', '[', '{'])
    }

    fn starting_with(self, first: &[char]) -> Self {
        Self(self.0.filter(|text| text.starts_with(first)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Verbatim<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&'de RawValue>::deserialize(deserializer)?.get();
        Ok(Self((text != "null").then_some(text)))
    }
}

/// An object read as `T`; anything else, such as the `[]` PHP writes for an empty one, is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Map<T>(pub Option<Box<T>>);

impl<T> Default for Map<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for Map<T> {
    type Target = Option<Box<T>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Taker<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Taker<T> {
            type Value = Map<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Map<T>, A::Error> {
                Ok(Map(Some(Box::new(T::deserialize(
                    MapAccessDeserializer::new(map),
                )?))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Map<T>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Map(None))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Map<T>, E> {
                Ok(Map(None))
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Map<T>, E> {
                Ok(Map(None))
            }

            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Map<T>, E> {
                Ok(Map(None))
            }

            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Map<T>, E> {
                Ok(Map(None))
            }

            fn visit_u64<E: de::Error>(self, _: u64) -> Result<Map<T>, E> {
                Ok(Map(None))
            }

            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Map<T>, E> {
                Ok(Map(None))
            }
        }

        deserializer.deserialize_any(Taker(PhantomData))
    }
}

/// A value whose key may be there without one: to the engine its mere presence says something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noted<T> {
    pub present: bool,
    pub value: T,
}

impl<T> Noted<T> {
    /// `Some` when the key is there, whatever it holds.
    pub fn seen(&self) -> Option<&T> {
        self.present.then_some(&self.value)
    }
}

impl<T> Deref for Noted<T> {
    type Target = T;

    fn deref(&self) -> &Self::Target {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Noted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self {
            present: true,
            value: T::deserialize(deserializer)?,
        })
    }
}

/// Reads a payload as `T`; text that is not a JSON object reads as one without keys.
pub fn read<'a, T: Deserialize<'a> + Default>(text: Option<&'a str>) -> T {
    text.and_then(|text| try_read(text).ok())
        .unwrap_or_default()
}

/// The same; text that is not JSON is an error.
pub fn try_read<'a, T: Deserialize<'a> + Default>(text: &'a str) -> Result<T, serde_json::Error> {
    let map = serde_json::from_str::<Map<T>>(text)?;
    Ok(map.0.map_or_else(T::default, |value| *value))
}

/// Reads JSON already parsed as `T`; anything but an object reads as one without keys.
pub fn read_value<T: DeserializeOwned + Default>(value: &Value) -> T {
    Map::<T>::deserialize(value)
        .ok()
        .and_then(|map| map.0)
        .map_or_else(T::default, |value| *value)
}

/// `…T10:11:12.123456Z`, `…T10:11:12+00:00`, or the space-separated form of a row, in UTC.
pub fn moment(text: &str) -> Option<DateTime<Utc>> {
    // The forms the engine writes itself; a long history holds tens of thousands.
    let utc = text.strip_suffix('Z').or(text.strip_suffix("+00:00"));
    if let Some(at) = utc.and_then(|text| plain_time(text.as_bytes())) {
        return Some(at.and_utc());
    }
    DateTime::parse_from_rfc3339(text)
        .map(|at| at.to_utc())
        .or_else(|_| {
            NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").map(|naive| naive.and_utc())
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use chrono::SecondsFormat;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Inner {
        name: Text,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Outer {
        id: Text,
        sequence: Int,
        strict: Int,
        on: Flag,
        at: Time,
        inner: Map<Inner>,
        any: Any,
        raw: Raw,
        noted: Noted<Text>,
    }

    #[test]
    fn a_key_without_a_value_is_still_noted() {
        for (text, present, value) in [
            ("{}", false, None),
            (r#"{"noted":null}"#, true, None),
            (r#"{"noted":[1]}"#, true, None),
            (r#"{"noted":"n"}"#, true, Some("n")),
        ] {
            let outer: Outer = read(Some(text));
            assert_eq!(outer.noted.present, present, "{text}");
            assert_eq!(outer.noted.as_deref(), value, "{text}");
        }
    }

    #[test]
    fn what_is_there_is_read() {
        let text = r#"{"id":"a","sequence":"7","strict":7,"on":true,"at":"2026-04-05T10:11:12+00:00",
            "inner":{"name":"n","extra":[1]},"any":[1,{"x":2}],"unknown":{}}"#;
        let outer: Outer = read(Some(text));
        assert_eq!(outer.id.as_deref(), Some("a"));
        assert_eq!(
            (outer.sequence.get(), outer.sequence.strict()),
            (Some(7), None)
        );
        assert_eq!((outer.strict.strict(), *outer.on), (Some(7), Some(true)));
        assert_eq!(outer.at.map(|at| at.timestamp()), Some(1_775_383_872));
        assert_eq!(
            outer.inner.as_ref().and_then(|inner| inner.name.as_deref()),
            Some("n")
        );
        assert!(outer.any.is_some());
    }

    #[test]
    fn raw_json_is_kept_as_text_until_asked() {
        for (text, value, collection, payload) in [
            (r#"{"raw":null}"#, None, false, false),
            ("{}", None, false, false),
            (
                r#"{"raw": {"a":[1, 2]} }"#,
                Some(json!({"a": [1, 2]})),
                true,
                true,
            ),
            (r#"{"raw":[]}"#, Some(json!([])), true, true),
            (r#"{"raw":"x"}"#, Some(json!("x")), false, true),
            (r#"{"raw":7}"#, Some(json!(7)), false, false),
        ] {
            let raw = read::<Outer>(Some(text)).raw;
            assert_eq!(raw.value(), value, "{text}");
            let raw = Verbatim::of(&raw);
            assert_eq!(raw.collection().0.is_some(), collection, "{text}");
            assert_eq!(raw.payload().0.is_some(), payload, "{text}");
        }
    }

    #[test]
    fn what_is_of_another_kind_is_no_value_and_harms_nothing_else() {
        for wrong in [
            "null",
            "[]",
            "{}",
            "true",
            "1.5",
            "\"\"",
            "[[1],{\"a\":[2]}]",
            "-3",
        ] {
            let text = format!(
                r#"{{"id":{wrong},"sequence":{wrong},"strict":{wrong},"on":{wrong},"at":{wrong},"inner":{wrong},"any":"kept"}}"#
            );
            let outer: Outer = read(Some(&text));
            assert_eq!(
                outer.any.as_ref().and_then(Value::as_str),
                Some("kept"),
                "{wrong}"
            );
            assert_eq!(*outer.at, None, "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_read_in_every_form_the_engine_writes() {
        for (text, expected) in [
            (
                "2026-04-05T10:11:12.123456Z",
                Some("2026-04-05T10:11:12.123456Z"),
            ),
            ("2026-04-05T10:11:12Z", Some("2026-04-05T10:11:12Z")),
            ("2026-04-05T10:11:12+00:00", Some("2026-04-05T10:11:12Z")),
            (
                "2026-04-05T12:11:12.5+02:00",
                Some("2026-04-05T10:11:12.500Z"),
            ),
            (
                "2026-04-05 10:11:12.123456",
                Some("2026-04-05T10:11:12.123456Z"),
            ),
            (
                "2026-04-05T10:11:12.1234567890Z",
                Some("2026-04-05T10:11:12.123456789Z"),
            ),
            ("2026-02-30T10:11:12Z", None),
            ("2026-04-05T10:11:12", None),
            ("2026-04-05T1é:11:12Z", None),
            ("Z", None),
            ("", None),
        ] {
            let told = moment(text).map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true));
            assert_eq!(told.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn text_that_is_no_object_reads_as_empty() {
        for text in [
            None,
            Some(""),
            Some("[]"),
            Some("null"),
            Some("{\"id\":\"a"),
            Some("7"),
        ] {
            assert_eq!(read::<Outer>(text), Outer::default(), "{text:?}");
        }
    }
}
