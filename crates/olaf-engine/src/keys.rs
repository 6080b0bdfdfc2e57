//! How a configuration writes its values: a choice by its name, a time as whole milliseconds, a
//! rate as bits per second.
//!
//! An engine's configuration is one struct that serde reads and writes as a flat table, and whose
//! `Default` holds every default. The modules below stand in `#[serde(with = "..")]`. Texts with
//! units (`"2s"`, `"40mbit"`) are turned into these numbers before, by whoever reads a file.

use crate::time::BitsPerSecond;
use alloc::string::String;
use core::fmt;
use olaf_wire::{AggregateKind, RuleKind, ServerGate, Step};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A choice that configurations write by name.
pub trait Named: Copy + PartialEq + 'static {
    /// Every value with its name.
    const NAMES: &'static [(&'static str, Self)];

    /// The value of that name.
    #[must_use]
    fn of_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

macro_rules! named_on_the_wire {
    ($($choice:ty),+) => {
        $(impl Named for $choice {
            const NAMES: &'static [(&'static str, Self)] = <$choice>::NAMES;
        })+
    };
}

named_on_the_wire!(RuleKind, AggregateKind, Step, ServerGate);

/// All names of a choice as an error lists them: `olaf, fifo or freshest`.
#[must_use]
pub fn names<T: Named>() -> String {
    let mut names = String::new();
    for (at, (name, _)) in T::NAMES.iter().enumerate() {
        names.push_str(match at {
            0 => "",
            at if at + 1 == T::NAMES.len() => " or ",
            _ => ", ",
        });
        names.push_str(name);
    }
    names
}

/// A [`Named`] choice.
pub mod named {
    use super::{Deserialize, Deserializer, Named, Serializer, String, names};
    use alloc::format;
    use serde::de::Error as _;

    /// Writes the name.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: Named, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        let name = T::NAMES.iter().find(|(_, known)| known == value).map(|(name, _)| *name);
        to.serialize_str(name.expect("every value of a choice has a name"))
    }

    /// Reads the name.
    ///
    /// # Errors
    /// Lists the names there are.
    pub fn deserialize<'de, T: Named, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let name = String::deserialize(from)?;
        T::of_name(&name).ok_or_else(|| D::Error::custom(format!("must be {}", names::<T>())))
    }
}

/// A time, in whole milliseconds.
pub mod ms {
    use super::{Deserialize, Deserializer, Serializer};
    use core::time::Duration;

    /// Writes the milliseconds.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(whole(*time))
    }

    /// Reads the milliseconds.
    ///
    /// # Errors
    /// No whole number.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }

    pub(super) fn whole(time: Duration) -> u64 {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A time that may be off, in whole milliseconds.
pub mod ms_or_off {
    use super::{Deserialize, Deserializer, Serialize, Serializer, ms};
    use core::time::Duration;

    /// Writes the milliseconds, or nothing.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(ms::whole).serialize(to)
    }

    /// Reads the milliseconds, or nothing.
    ///
    /// # Errors
    /// No whole number.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}

impl Serialize for BitsPerSecond {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.get())
    }
}

impl<'de> Deserialize<'de> for BitsPerSecond {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bits = u64::deserialize(from)?;
        Self::new(bits)
            .ok_or_else(|| D::Error::custom(format_args!("must be from 1 to {}", Self::MAX)))
    }
}

/// A key that cannot be, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key, or the keys that do not go together.
    pub key: &'static str,
    /// What it may be.
    pub allowed: &'static str,
}

impl ConfigError {
    /// Refuses the key of a value that is not above 0.
    ///
    /// # Errors
    /// This one.
    pub fn unless_positive(key: &'static str, is_positive: bool) -> Result<(), Self> {
        if is_positive { Ok(()) } else { Err(Self { key, allowed: "must be above 0" }) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.allowed)
    }
}

impl core::error::Error for ConfigError {}
