//! Rows as bytes, for what has to wait outside of memory. They are read back by the same process:
//! there is no version and no other machine.

use std::{
    io::{self, Read as _},
    sync::Arc,
};

use chrono::{DateTime, NaiveDateTime};

use super::{
    Val,
    row::{Columns, Row},
};

/// No text.
const NONE: u32 = u32::MAX;

impl Row {
    /// Appends every cell.
    pub fn pack(&self, out: &mut Vec<u8>) {
        for (_, cell) in self.cells() {
            match cell {
                Val::Null => out.push(0),
                Val::Bool(b) => out.extend_from_slice(&[1, u8::from(*b)]),
                Val::Int(n) => {
                    out.push(2);
                    pack_int(out, *n);
                }
                Val::UInt(n) => {
                    out.push(3);
                    out.extend_from_slice(&n.to_le_bytes());
                }
                Val::Float(n) => {
                    out.push(4);
                    out.extend_from_slice(&n.to_le_bytes());
                }
                Val::Text(text) => {
                    out.push(5);
                    pack_bytes(out, Some(text.as_bytes()));
                }
                Val::Bytes(bytes) => {
                    out.push(6);
                    pack_bytes(out, Some(bytes));
                }
                Val::Time(at) => {
                    out.push(7);
                    pack_time(out, Some(*at));
                }
            }
        }
    }

    /// A row of these columns, as it was packed.
    pub fn unpack(columns: &Arc<Columns>, mut packed: &[u8]) -> io::Result<Self> {
        let packed = &mut packed;
        let mut row = Self::blank(Arc::clone(columns));
        row.refill(|_, cell| {
            *cell = match u8::from_le_bytes(unpack(packed)?) {
                0 => Val::Null,
                1 => Val::Bool(unpack(packed)? != [0]),
                2 => Val::Int(unpack_int(packed)?),
                3 => Val::UInt(u64::from_le_bytes(unpack(packed)?)),
                4 => Val::Float(f64::from_le_bytes(unpack(packed)?)),
                5 => Val::Text(unpack_text(packed)?.unwrap_or_default()),
                6 => Val::Bytes(unpack_bytes(packed)?.unwrap_or_default()),
                _ => unpack_time(packed)?.map_or(Val::Null, Val::Time),
            };
            io::Result::Ok(())
        })?;
        Ok(row)
    }
}

pub fn pack_int(out: &mut Vec<u8>, n: i64) {
    out.extend_from_slice(&n.to_le_bytes());
}

pub fn unpack_int(packed: &mut &[u8]) -> io::Result<i64> {
    Ok(i64::from_le_bytes(unpack(packed)?))
}

pub fn pack_time(out: &mut Vec<u8>, at: Option<NaiveDateTime>) {
    let (seconds, nanos) = at.map(|at| at.and_utc()).map_or((0, NONE), |at| {
        (at.timestamp(), at.timestamp_subsec_nanos())
    });
    pack_int(out, seconds);
    out.extend_from_slice(&nanos.to_le_bytes());
}

pub fn unpack_time(packed: &mut &[u8]) -> io::Result<Option<NaiveDateTime>> {
    let seconds = unpack_int(packed)?;
    let nanos = u32::from_le_bytes(unpack(packed)?);
    Ok(DateTime::from_timestamp(seconds, nanos).map(|at| at.naive_utc()))
}

/// No database holds a text of four gigabytes.
pub fn pack_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let long = bytes.and_then(|bytes| u32::try_from(bytes.len()).ok());
    out.extend_from_slice(&long.unwrap_or(NONE).to_le_bytes());
    if long.is_some() {
        out.extend_from_slice(bytes.unwrap_or_default());
    }
}

fn unpack_bytes(packed: &mut &[u8]) -> io::Result<Option<Vec<u8>>> {
    let long = u32::from_le_bytes(unpack(packed)?);
    if long == NONE {
        return Ok(None);
    }
    let (bytes, rest) = packed
        .split_at_checked(long as usize)
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    *packed = rest;
    Ok(Some(bytes.to_vec()))
}

pub fn unpack_text(packed: &mut &[u8]) -> io::Result<Option<String>> {
    let text = unpack_bytes(packed)?.map(String::from_utf8);
    text.transpose().map_err(io::Error::other)
}

fn unpack<const N: usize>(packed: &mut &[u8]) -> io::Result<[u8; N]> {
    let mut unpacked = [0; N];
    packed.read_exact(&mut unpacked)?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was() {
        let leap = DateTime::from_timestamp(1_483_228_799, 1_999_999_999);
        let cells = [
            Val::Null,
            Val::Bool(true),
            Val::Bool(false),
            Val::Int(i64::MIN),
            Val::UInt(u64::MAX),
            Val::Float(-0.1),
            Val::Text("é\0".into()),
            Val::Text(String::new()),
            Val::Bytes(vec![0xff, 0]),
            Val::Time(leap.unwrap().naive_utc()),
            Val::Time(NaiveDateTime::MIN),
        ];
        let names: Vec<String> = (0..cells.len()).map(|n| n.to_string()).collect();
        let columns = Columns::named(names.iter().map(String::as_str));
        let mut each = cells.iter().cloned();
        let row = columns.row(|_| each.next().unwrap());
        let mut packed = Vec::new();
        row.pack(&mut packed);
        let back = Row::unpack(&columns, &packed).unwrap();
        assert_eq!(back.into_values(), cells);
        assert!(Row::unpack(&columns, &packed[..packed.len() - 1]).is_err());
    }
}
