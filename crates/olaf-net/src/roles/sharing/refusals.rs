//! Datagrams that an engine of the sharing protocol refused, by reason.

use olaf_engine::Verdict;
use olaf_engine::drop::Refused;
use olaf_engine::report::{Group, Report, Value};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<&'static str, u64>);

impl Refusals {
    /// Counts the reason, if there is one; the engine's verdict on the datagram.
    pub(super) fn count(&mut self, result: Result<(), Refused>) -> Verdict {
        let Err(why) = result else { return Verdict::Absorb };
        *self.0.entry(why.name()).or_default() += 1;
        Verdict::refused(why)
    }

    pub(super) fn report(&self, to: &mut dyn Report) {
        to.open("refused", Group::Map);
        for (name, count) in &self.0 {
            to.value(name, Value::Count(*count));
        }
        to.close();
    }
}
