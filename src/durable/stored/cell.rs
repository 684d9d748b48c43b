//! A column's value on its way into a table: what a repair shows before it writes it.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::loose::Raw;
use crate::db::Json;

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    /// A moment in a column the engine writes in its own zone.
    Time(DateTime<Utc>),
    Json(Value),
}

/// What can stand in a column.
pub trait AsCell {
    fn cell(&self) -> Cell;
}

macro_rules! as_cell {
    ($($type:ty => |$value:ident| $cell:expr;)+) => {
        $(impl AsCell for $type {
            fn cell(&self) -> Cell {
                let $value = self;
                $cell
            }
        })+
    };
}

as_cell! {
    bool => |v| Cell::Bool(*v);
    i64 => |v| Cell::Int(*v);
    str => |v| Cell::Text(v.to_owned());
    &str => |v| Cell::Text((*v).to_owned());
    String => |v| Cell::Text(v.clone());
    DateTime<Utc> => |v| Cell::Time(*v);
    Value => |v| Cell::Json(v.clone());
    Json => |v| match v {
        Json::Value(value) => Cell::Json(value.clone()),
        Json::Malformed(text) => Cell::Text(text.clone()),
    };
    Raw => |v| match (v.value(), &v.0) {
        (Some(value), _) => Cell::Json(value),
        (None, Some(text)) => Cell::Text(text.to_string()),
        (None, None) => Cell::Null,
    };
}

impl<T: AsCell> AsCell for Option<T> {
    fn cell(&self) -> Cell {
        self.as_ref().map_or(Cell::Null, AsCell::cell)
    }
}
