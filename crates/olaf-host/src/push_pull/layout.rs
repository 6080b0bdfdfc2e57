//! Names and shapes of a model's arrays, as a worker describes them to the server.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use olaf_wire::MAX_LAYOUT;
use serde::{Deserialize, Serialize};

/// The longest name of an array, bytes.
const MAX_NAME: usize = 128;
/// The most dimensions of an array, numpy's own limit.
const MAX_DIMENSIONS: usize = 64;

/// An array of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedArray {
    /// Its name, unique in the model.
    pub name: String,
    /// Its lengths, the slowest first; none: a single number.
    pub shape: Vec<u32>,
}

impl NamedArray {
    /// Numbers in it; `None` if they are too many to count.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |size, length| size.checked_mul(u64::from(*length)))
    }
}

/// All arrays of a model, in the order in which their values stand in it. They are checked: names
/// are fit for a file's entries, and the sizes add up to the model's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Layout(Vec<NamedArray>);

/// Why a description is none of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Longer than a description may be.
    TooLong(usize),
    /// Not JSON of the form `[{"name": .., "shape": [..]}, ..]`.
    NotJson(String),
    /// A name that no entry of a checkpoint can have.
    BadName(String),
    /// A name that occurs twice.
    Twice(String),
    /// More dimensions than an array has.
    Dimensions(String),
    /// The sizes do not add up to the parameters.
    WrongSize {
        /// Numbers in all arrays; `u64::MAX` if they are too many to count.
        have: u64,
        /// The model's parameters.
        need: u32,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => {
                write!(f, "{bytes} bytes: a layout has at most {MAX_LAYOUT}; shorten the names")
            }
            Self::NotJson(why) => {
                write!(f, "not JSON of the form [{{\"name\": .., \"shape\": [..]}}, ..]: {why}")
            }
            Self::BadName(name) => write!(
                f,
                "name {name:?}: a name has 1 to {MAX_NAME} bytes without control characters, \
                 backslashes and \"..\" folders, does not begin with \"/\" or \"olaf.\" and does not \
                 end in \".npy\""
            ),
            Self::Twice(name) => write!(f, "name {name:?} occurs twice"),
            Self::Dimensions(name) => {
                write!(f, "array {name:?} has more than {MAX_DIMENSIONS} dimensions")
            }
            Self::WrongSize { have, need } => {
                write!(f, "the arrays have {have} numbers together; the model has {need}")
            }
        }
    }
}

impl core::error::Error for LayoutError {}

impl Layout {
    /// Reads a description of a model with `parameters` parameters.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8], parameters: u32) -> Result<Self, LayoutError> {
        if text.len() > MAX_LAYOUT {
            return Err(LayoutError::TooLong(text.len()));
        }
        let arrays = serde_json::from_slice::<Vec<NamedArray>>(text);
        let arrays = arrays.map_err(|error| LayoutError::NotJson(alloc::format!("{error}")))?;
        Self::new(arrays, parameters)
    }

    /// Checks arrays.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(arrays: Vec<NamedArray>, parameters: u32) -> Result<Self, LayoutError> {
        let mut names = BTreeSet::new();
        let mut have = 0u64;
        for array in &arrays {
            if !is_name(&array.name) {
                return Err(LayoutError::BadName(array.name.clone()));
            }
            if !names.insert(array.name.as_str()) {
                return Err(LayoutError::Twice(array.name.clone()));
            }
            if array.shape.len() > MAX_DIMENSIONS {
                return Err(LayoutError::Dimensions(array.name.clone()));
            }
            have = have.saturating_add(array.size().unwrap_or(u64::MAX));
        }
        if have != u64::from(parameters) {
            return Err(LayoutError::WrongSize { have, need: parameters });
        }
        Ok(Self(arrays))
    }

    /// The arrays in their order.
    #[must_use]
    pub fn arrays(&self) -> &[NamedArray] {
        &self.0
    }
}

/// Returns true if an entry of a file can have that name and unpacks into the folder where one
/// expects it.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && !name.chars().any(|c| c.is_control() || c == '\\')
        && !name.starts_with('/')
        && !name.starts_with("olaf.")
        && !name.ends_with(".npy")
        && !name.split('/').any(|folder| folder == "..")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn names_and_shapes_are_read_in_their_order() {
        let text = br#"[{"name": "b", "shape": [2, 3]}, {"name": "a", "shape": []},
                        {"name": "none", "shape": [0, 4]}]"#;
        let layout = Layout::parse(text, 7).unwrap();
        let read: Vec<_> = layout.arrays().iter().map(|a| (a.name.as_str(), a.size())).collect();
        assert_eq!(read, [("b", Some(6)), ("a", Some(1)), ("none", Some(0))]);
        let again = serde_json::to_vec(&layout).unwrap();
        assert_eq!(Layout::parse(&again, 7), Ok(layout));
    }

    #[test]
    fn what_describes_no_model_is_refused_with_the_reason() {
        let one = |name: &str, shape: &str| format!(r#"[{{"name": {name:?}, "shape": {shape}}}]"#);
        let reason = |text: &str| Layout::parse(text.as_bytes(), 6).unwrap_err();
        for name in ["", "/w", "olaf.rule", "a/../b", "a\\b", "a\nb", "w.npy", &"x".repeat(129)] {
            assert_eq!(reason(&one(name, "[6]")), LayoutError::BadName(name.into()));
        }
        assert_eq!(
            reason(r#"[{"name": "w", "shape": [3]}, {"name": "w", "shape": [3]}]"#),
            LayoutError::Twice("w".into())
        );
        let wrong = |have| LayoutError::WrongSize { have, need: 6 };
        assert_eq!(reason("[]"), wrong(0));
        assert_eq!(reason(&one("w", "[2, 2]")), wrong(4));
        assert_eq!(reason(&one("w", "[4294967295, 4294967295, 4294967295]")), wrong(u64::MAX));
        assert!(matches!(
            reason(&one("w", &format!("[6{}]", ",1".repeat(64)))),
            LayoutError::Dimensions(_)
        ));
        for text in
            ["", "[", "{}", "\u{fffd}", r#"[{"name": "w"}]"#, &one("w", "[-6]"), &"[".repeat(9999)]
        {
            assert!(matches!(reason(text), LayoutError::NotJson(_)), "{text}");
        }
        assert!(matches!(
            Layout::parse(b"[{\"name\": \"\xff\", \"shape\": [6]}]", 6),
            Err(LayoutError::NotJson(_))
        ));
        assert_eq!(reason(&" ".repeat(MAX_LAYOUT + 1)), LayoutError::TooLong(MAX_LAYOUT + 1));
    }
}
