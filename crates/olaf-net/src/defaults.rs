//! What a role does where nothing is set: the core's defaults, for those that show them.

use crate::json::plain;
use crate::{ClientConfig, ServerConfig, SwitchConfig};
use olaf_engine::switch::native::Admission;
use olaf_sched::protocol::SharingOptions;
use serde_json::{Map, Value};

/// The tables `switch`, `server`, `worker` and `sharing` with every key and its default, as JSON.
///
/// `admission_timeout_ms` is how long a question may take where somebody is asked; the switch's own
/// default is to ask nobody.
#[must_use]
pub fn defaults() -> String {
    let switch = SwitchConfig::default();
    let asking = SwitchConfig { engine: switch.engine.asking(Admission::default()), ..switch };
    let tables = [
        ("switch", plain(&asking)),
        ("server", plain(&ServerConfig::default())),
        ("worker", plain(&ClientConfig::default())),
        ("sharing", plain(&SharingOptions::default())),
    ];
    let tables = tables.map(|(name, table)| (name.to_owned(), Value::Object(table)));
    Value::Object(Map::from_iter(tables)).to_string()
}
