//! The limits of a party, as configurations write them.

use crate::keys::ConfigError;
use alloc::format;
use alloc::string::String;
use core::fmt;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A limit. Configurations write `off` as nothing, a number, or a multiple as a text: `"100x"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// No limit.
    Off,
    /// This value.
    At(f64),
    /// This multiple of the recent median of the other workers.
    Median(f64),
}

impl Clip {
    /// Returns true if there is no limit.
    #[must_use]
    #[inline]
    pub const fn is_off(self) -> bool {
        matches!(self, Self::Off)
    }

    fn is_possible(self) -> bool {
        match self {
            Self::Off => true,
            Self::At(limit) | Self::Median(limit) => limit > 0.0 && limit.is_finite(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "off" {
            return Some(Self::Off);
        }
        let clip = match text.strip_suffix('x') {
            Some(multiple) => Self::Median(multiple.trim().parse().ok()?),
            None => Self::At(text.parse().ok()?),
        };
        clip.is_possible().then_some(clip)
    }
}

impl Serialize for Clip {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => to.serialize_none(),
            Self::At(limit) => to.serialize_f64(*limit),
            Self::Median(multiple) => to.serialize_str(&format!("{multiple}x")),
        }
    }
}

impl<'de> Deserialize<'de> for Clip {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ClipVisitor)
    }
}

struct ClipVisitor;

impl Visitor<'_> for ClipVisitor {
    type Value = Clip;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("off, a number above 0, or a multiple such as \"100x\"")
    }

    fn visit_unit<E>(self) -> Result<Clip, E> {
        Ok(Clip::Off)
    }

    fn visit_none<E>(self) -> Result<Clip, E> {
        Ok(Clip::Off)
    }

    fn visit_u64<E: de::Error>(self, limit: u64) -> Result<Clip, E> {
        self.visit_f64(limit as f64)
    }

    fn visit_i64<E: de::Error>(self, limit: i64) -> Result<Clip, E> {
        self.visit_f64(limit as f64)
    }

    fn visit_f64<E: de::Error>(self, limit: f64) -> Result<Clip, E> {
        let clip = Clip::At(limit);
        clip.is_possible()
            .then_some(clip)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Float(limit), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Clip, E> {
        Clip::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The limits of a party, a flat part of its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Limits {
    /// Of the norm of a mean gradient, segment by segment.
    pub clip_norm: Clip,
    /// Of the weight of one contribution.
    pub clip_weight: Clip,
    /// Of a reward: its magnitude, or its distance from the median in units of the spread.
    pub clip_reward: Clip,
    /// Of a worker's updates in a second. More are refused.
    pub max_rate: Clip,
    /// Of the usual steps that an address moves a model by in a second: the sum of its norms, each divided by
    /// the median norm of the others. What is above is scaled down. A multiple is one of the median of the others.
    pub max_movement: Clip,
}

impl Default for Limits {
    /// Honest training does not come near: measured in `docs/design/033-hostile.md`.
    fn default() -> Self {
        let usual = Clip::Median(100.0);
        // Honest workers differ ten times in speed, and somewhat from second to second.
        let max_rate = Clip::Median(20.0);
        Self {
            clip_norm: Clip::Median(10.0),
            clip_weight: usual,
            clip_reward: usual,
            max_rate,
            // Off: it cannot tell a fast machine from a faulty one.
            max_movement: Clip::Off,
        }
    }
}

impl Limits {
    /// No limits.
    pub const OFF: Self = Self {
        clip_norm: Clip::Off,
        clip_weight: Clip::Off,
        clip_reward: Clip::Off,
        max_rate: Clip::Off,
        max_movement: Clip::Off,
    };

    /// Returns true if some limit needs the norms of updates.
    #[must_use]
    #[inline]
    pub const fn measure_norms(&self) -> bool {
        !self.clip_norm.is_off() || !self.max_movement.is_off()
    }

    /// Refuses a limit that is none.
    ///
    /// # Errors
    /// The key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let limits = [
            ("clip_norm", self.clip_norm),
            ("clip_weight", self.clip_weight),
            ("clip_reward", self.clip_reward),
            ("max_rate", self.max_rate),
            ("max_movement", self.max_movement),
        ];
        let bad = limits.into_iter().find(|(_, clip)| !clip.is_possible());
        let allowed = "must be off, a number above 0, or a multiple such as \"100x\"";
        bad.map_or(Ok(()), |(key, _)| Err(ConfigError { key, allowed }))
    }
}

/// As configurations and messages write it.
impl fmt::Display for Clip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = match self {
            Self::Off => "off".into(),
            Self::At(limit) => format!("{limit}"),
            Self::Median(multiple) => format!("{multiple}x"),
        };
        f.write_str(&text)
    }
}
