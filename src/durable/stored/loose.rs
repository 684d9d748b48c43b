//! JSON the engine wrote, read without trust: a key that is missing, null or of another kind
//! than expected is "no value", never an error for its neighbours.

use std::{borrow::Cow, ops::Deref};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use serde_json::Value;

use super::walk::Next;
pub use super::walk::{Members, NotJson, Walk};
use crate::db::plain_time;

/// What can be read of the value that comes next, whatever that is.
pub trait Loose<'a>: Sized {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson>;
}

/// The keys of an object that somebody asks for, each read as its field.
pub trait Shape<'a>: Members<'a> + Default {}

/// Declares a shape: a struct whose fields are the keys it reads. Where a key stands twice the
/// last one counts, as in PHP.
macro_rules! shape {
    ($(
        $(#[$outer:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? {
            $(
                $(#[doc = $doc:literal])*
                $(#[key = $key:literal])?
                $field_vis:vis $field:ident: $type:ty
            ),* $(,)?
        }
    )+) => {$(
        $(#[$outer])*
        #[derive(Default)]
        $vis struct $name $(<$life>)? {
            $(
                $(#[doc = $doc])*
                $field_vis $field: $type,
            )*
        }

        $crate::durable::stored::loose::shape!(@members $name $($life)? {
            $($field ($($key)?) $type,)*
        });
    )+};

    (@members $name:ident {$($fields:tt)*}) => {
        $crate::durable::stored::loose::shape!(@members [$name] 't {$($fields)*});
    };
    (@members $name:ident $life:lifetime {$($fields:tt)*}) => {
        $crate::durable::stored::loose::shape!(@members [$name<$life>] $life {$($fields)*});
    };
    (@members [$shape:ty] $life:lifetime {$($field:ident ($($key:literal)?) $type:ty,)*}) => {
        impl<$life> $crate::durable::stored::loose::Members<$life> for $shape {
            fn member(
                &mut self,
                key: &str,
                walk: &mut $crate::durable::stored::loose::Walk<$life>,
            ) -> Result<(), $crate::durable::stored::loose::NotJson> {
                // The lengths of the names: most are told apart by that alone.
                #[allow(dead_code, non_upper_case_globals, reason = "named as their fields")]
                mod long {
                    $(
                        pub const $field: usize =
                            $crate::durable::stored::loose::shape!(@key $field $($key)?).len();
                    )*
                }
                match (key.len(), key) {
                    $(
                        (long::$field, $crate::durable::stored::loose::shape!(@key $field $($key)?)) => {
                            self.$field = $crate::durable::stored::loose::Loose::read(walk)?;
                            Ok(())
                        }
                    )*
                    _ => walk.pass().map(drop),
                }
            }
        }

        impl<$life> $crate::durable::stored::loose::Shape<$life> for $shape {}
    };

    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
}
pub(crate) use shape;

/// Declares a newtype over `Option<T>`.
macro_rules! loose {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? ($inner:ty);)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name $(<$life>)? (pub Option<$inner>);

        impl $(<$life>)? Deref for $name $(<$life>)? {
            type Target = Option<$inner>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
    )+};
}

loose! {
    /// A non-empty string.
    Text(String);

    /// The same, left where it stands unless it holds escapes.
    Str<'a>(Cow<'a, str>);

    /// An integer, or a numeric string as old rows hold it.
    Int(Number);

    /// A boolean and nothing else.
    Flag(bool);

    /// A moment in any of the forms the engine writes into JSON; all are absolute.
    Time(DateTime<Utc>);

    /// Any JSON but null.
    Any(Value);
}

/// A string; what is none is passed over.
#[inline]
fn string<'a>(walk: &mut Walk<'a>) -> Result<Option<Cow<'a, str>>, NotJson> {
    if walk.peek()? == Next::Text {
        return walk.text().map(Some);
    }
    walk.pass()?;
    Ok(None)
}

impl<'a> Loose<'a> for Text {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        Ok(Self(Str::read(walk)?.0.map(Cow::into_owned)))
    }
}

impl<'a> Loose<'a> for Str<'a> {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        Ok(Self(string(walk)?.filter(|text| !text.is_empty())))
    }
}

impl<'a> Loose<'a> for Int {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        Ok(Self(if walk.peek()? == Next::Number {
            walk.pass()?.parse().ok().map(Number::Plain)
        } else {
            string(walk)?.and_then(|text| text.trim().parse().ok().map(Number::Quoted))
        }))
    }
}

impl<'a> Loose<'a> for Flag {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        Ok(Self(match walk.pass()? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }))
    }
}

impl<'a> Loose<'a> for Time {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        Ok(Self(string(walk)?.as_deref().and_then(moment)))
    }
}

impl<'a> Loose<'a> for Any {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        let Some(text) = Verbatim::read(walk)?.0 else {
            return Ok(Self(None));
        };
        serde_json::from_str(text)
            .map(|value| Self(Some(value)))
            .map_err(|_| NotJson)
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

impl<'a> Loose<'a> for Raw {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        Ok(Self(Verbatim::read(walk)?.0.map(Into::into)))
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

impl<'a> Loose<'a> for Verbatim<'a> {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        let text = walk.pass()?;
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

impl<'a, T: Shape<'a>> Loose<'a> for Map<T> {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        if walk.peek()? != Next::Map {
            walk.pass()?;
            return Ok(Self(None));
        }
        let mut shape = Box::<T>::default();
        walk.members(&mut *shape)?;
        Ok(Self(Some(shape)))
    }
}

impl<'a, T: Loose<'a>> Loose<'a> for Vec<T> {
    /// What is no list has no items.
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        let mut items = Self::new();
        if walk.peek()? == Next::List {
            walk.items(&mut |walk| {
                items.push(T::read(walk)?);
                Ok(())
            })?;
        } else {
            walk.pass()?;
        }
        Ok(items)
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

impl<'a, T: Loose<'a>> Loose<'a> for Noted<T> {
    fn read(walk: &mut Walk<'a>) -> Result<Self, NotJson> {
        Ok(Self {
            present: true,
            value: T::read(walk)?,
        })
    }
}

/// Reads a payload as `T`; text that is not a JSON object reads as one without keys.
pub fn read<'a, T: Shape<'a>>(text: Option<&'a str>) -> T {
    text.and_then(|text| try_read(text).ok())
        .unwrap_or_default()
}

/// The same; text that is not JSON is an error.
pub fn try_read<'a, T: Shape<'a>>(text: &'a str) -> Result<T, NotJson> {
    let mut walk = Walk::over(text);
    let mut shape = T::default();
    if walk.peek()? == Next::Map {
        walk.members(&mut shape)?;
    } else {
        walk.pass()?;
    }
    walk.end()?;
    Ok(shape)
}

/// Reads JSON already parsed as `T`.
pub fn read_value<T: for<'t> Shape<'t>>(value: &Value) -> T {
    read(Some(&value.to_string()))
}

/// The whole text as one value.
pub fn try_value<'a, T: Loose<'a>>(text: &'a str) -> Result<T, NotJson> {
    let mut walk = Walk::over(text);
    let value = T::read(&mut walk)?;
    walk.end()?;
    Ok(value)
}

/// Whether a text is JSON.
pub fn is_json(text: &str) -> bool {
    try_value::<Verbatim<'_>>(text).is_ok()
}

/// `…T10:11:12.123456Z`, `…T10:11:12+00:00`, or what other writers leave of that: the form of a
/// row, no zone, a day alone; then in UTC.
pub fn moment(text: &str) -> Option<DateTime<Utc>> {
    // The forms the engine writes itself; a long history holds tens of thousands.
    let utc = text.strip_suffix('Z').or(text.strip_suffix("+00:00"));
    if let Some(at) = utc.and_then(|text| plain_time(text.as_bytes())) {
        return Some(at.and_utc());
    }
    let zoned = DateTime::parse_from_rfc3339(text).map(|at| at.to_utc());
    let naive = || plain_time(text.as_bytes());
    let day = || Some(text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN));
    zoned
        .ok()
        .or_else(|| naive().or_else(day).map(|at| at.and_utc()))
}

#[cfg(test)]
mod tests {
    use chrono::SecondsFormat;
    use serde_json::json;

    use super::*;

    shape! {
        #[derive(Debug, PartialEq)]
        struct Inner {
            name: Text,
        }

        #[derive(Debug, PartialEq)]
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
    fn a_moment_is_read_in_every_form_it_is_written() {
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
            ("2026-04-05T10:11:12", Some("2026-04-05T10:11:12Z")),
            ("2026-04-05T10:11:12.25", Some("2026-04-05T10:11:12.250Z")),
            ("2026-04-05", Some("2026-04-05T00:00:00Z")),
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
