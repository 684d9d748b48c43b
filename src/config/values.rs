//! Values as people write them, with a message that shows how.

use std::{net::SocketAddr, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, de::Error as _};

/// A whole number between two bounds, which hold on the command line, in the environment and in
/// the file alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct Within<const LEAST: u32, const MOST: u32>(u32);

pub type Seconds = Within<1, 3600>;
pub type Connections = Within<1, 200>;

impl<const LEAST: u32, const MOST: u32> Within<LEAST, MOST> {
    pub fn get(self) -> u32 {
        self.0
    }

    fn wrong(given: impl std::fmt::Display) -> String {
        format!("{given} is not a whole number from {LEAST} to {MOST}")
    }
}

impl<const LEAST: u32, const MOST: u32> TryFrom<i64> for Within<LEAST, MOST> {
    type Error = String;

    fn try_from(given: i64) -> Result<Self, String> {
        let number = u32::try_from(given).ok();
        let number = number.filter(|number| (LEAST..=MOST).contains(number));
        number.map(Self).ok_or_else(|| Self::wrong(given))
    }
}

impl<const LEAST: u32, const MOST: u32> FromStr for Within<LEAST, MOST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let given: i64 = text.parse().map_err(|_| Self::wrong(format!("{text:?}")))?;
        given.try_into()
    }
}

/// As people, Compose files and unit files write it.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!("{text:?} is none of true, false, 1, 0, yes and no")),
    }
}

pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is not an address with a port, such as 127.0.0.1:7420 or [::1]:7420")
    })
}

pub fn zone(text: &str) -> Result<crate::zone::Zone, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a zone, such as UTC or Europe/Berlin"))
}

pub fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is not a moment with its zone, such as 2026-11-15T12:00:00Z")
    })
}

pub fn host(text: &str) -> Result<String, String> {
    let name = text.trim().trim_end_matches('.').to_ascii_lowercase();
    let letters = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if name.is_empty() || !name.chars().all(letters) {
        return Err(format!(
            "{text:?} is not a host name, such as ops.example.com, without scheme and port"
        ));
    }
    Ok(name)
}

pub(super) fn hosts_in_file<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<String>>, D::Error> {
    let list = Option::<Vec<String>>::deserialize(from)?.unwrap_or_default();
    let hosts: Result<Vec<String>, String> = list.iter().map(|text| host(text)).collect();
    let hosts = hosts.map_err(D::Error::custom)?;
    Ok((!hosts.is_empty()).then_some(hosts))
}

macro_rules! in_file {
    ($($name:ident: $parse:path => $type:ty;)+) => {$(
        pub(super) fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$type>, D::Error> {
            let text = Option::<String>::deserialize(from)?;
            text.as_deref().map($parse).transpose().map_err(D::Error::custom)
        }
    )+};
}

in_file! {
    address_in_file: address => SocketAddr;
    zone_in_file: zone => crate::zone::Zone;
    moment_in_file: moment => DateTime<Utc>;
}
