//! Events that a program around an engine tells as JSON.

use olaf_engine::Event;
use olaf_engine::event::{Said, Told};
use serde_json::Value;

/// The event in a flat table of numbers and texts that has its name under `event`.
pub(crate) fn of_json(event: &Value) -> Event {
    let fields = event.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| *name != "event").map(|(name, value)| {
        let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), value.as_u64().map_or_else(|| Said::Text(text()), Said::Number))
    });
    let name = event["event"].as_str().unwrap_or("other").to_owned();
    Event::Other(Box::new(Told { name, fields: fields.collect() }))
}
