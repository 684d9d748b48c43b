//! What a cell can be, whatever the database calls it.

use chrono::NaiveDateTime;

#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Time(NaiveDateTime),
}

impl Val {
    /// The kind's name, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "integer",
            Self::UInt(_) => "unsigned integer",
            Self::Float(_) => "float",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Time(_) => "timestamp",
        }
    }

    /// The value as far as a message shows it; none for null.
    pub fn shown(&self) -> Option<String> {
        const MOST: usize = 120;
        let text = match self {
            Self::Null => return None,
            Self::Bool(b) => b.to_string(),
            Self::Int(n) => n.to_string(),
            Self::UInt(n) => n.to_string(),
            Self::Float(n) => n.to_string(),
            Self::Text(text) => return Some(shortened(text, MOST)),
            Self::Bytes(bytes) => {
                let start = bytes.get(..MOST).unwrap_or(bytes);
                return Some(shortened(&String::from_utf8_lossy(start), MOST));
            }
            Self::Time(at) => at.to_string(),
        };
        Some(text)
    }
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

macro_rules! from {
    ($($from:ty => |$value:ident| $into:expr;)+) => {
        $(impl From<$from> for Val {
            fn from($value: $from) -> Self {
                $into
            }
        })+
    };
}

from! {
    bool => |v| Self::Bool(v);
    i32 => |v| Self::Int(v.into());
    i64 => |v| Self::Int(v);
    u32 => |v| Self::Int(v.into());
    u64 => |v| Self::UInt(v);
    f64 => |v| Self::Float(v);
    &str => |v| Self::Text(v.to_owned());
    String => |v| Self::Text(v);
    &String => |v| Self::Text(v.clone());
    Vec<u8> => |v| Self::Bytes(v);
    NaiveDateTime => |v| Self::Time(v);
}

impl<T: Into<Val>> From<Option<T>> for Val {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
