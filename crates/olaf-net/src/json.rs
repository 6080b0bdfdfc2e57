//! Configurations as JSON.

use crate::error::StartError;
use serde::de::DeserializeOwned;

/// Reads a configuration.
///
/// # Errors
/// [`StartError::Config`] that names the role, the key and what was expected there.
pub(crate) fn read<T: DeserializeOwned>(role: &str, text: &str) -> Result<T, StartError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut reader);
    let read = read.and_then(|value| match reader.end() {
        Ok(()) => Ok(value),
        Err(error) => {
            Err(serde_path_to_error::Error::new(serde_path_to_error::Track::new().path(), error))
        }
    });
    read.map_err(|error| {
        let (path, text) = (error.path().to_string(), error.inner().to_string());
        // Line and column of a text that a program wrote help nobody.
        let what = text.split(" at line ").next().unwrap_or(&text);
        StartError::Config(match path.as_str() {
            "." => format!("{role} configuration: {what}"),
            key => format!("{role} configuration: {key}: {what}"),
        })
    })
}
