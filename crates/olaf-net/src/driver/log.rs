//! Events that wait until a caller fetches them.

use super::report;
use crate::io::outgoing::Trouble;
use crate::io::peers::Peers;
use crate::keys::{Renewed, Sources};
use olaf_engine::{Engine, Instant, Sealed};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Events kept at once; the oldest give way.
const LIMIT: usize = 4096;
/// Newest events kept for those who look.
const RECENT: usize = 32;
/// Shortest time between two events about trouble with sending.
const TELL_TROUBLE_EVERY: Duration = Duration::from_secs(1);
/// Shortest time between two events about another version.
const TELL_VERSION_EVERY: Duration = Duration::from_secs(10);
/// Shortest time between two events about datagrams that keys kept out for the same reason.
const TELL_KEY_EVERY: Duration = Duration::from_secs(10);

/// The events.
#[derive(Default)]
pub(super) struct Log {
    events: VecDeque<Value>,
    forgotten: u64,
    told_trouble: Option<Instant>,
    told_version: Option<Instant>,
    /// Datagrams of other versions since that.
    other_versions: u64,
    /// When a datagram that keys kept out was told of, and how many came since, by reason.
    told_keys: BTreeMap<&'static str, (Instant, u64)>,
    /// The newest events, whether they were fetched or not: an operator looks at them.
    recent: VecDeque<Value>,
}

impl Log {
    /// Takes everything that an engine has to tell.
    pub(super) fn collect(&mut self, now: Instant, engine: &mut impl Engine, peers: &Peers) {
        while let Some(event) = engine.poll_event() {
            self.keep(report::of_event(&event, now, peers));
        }
    }

    /// Notes that a datagram did not leave. A probe only asked whether a datagram of its length
    /// passes: no trouble.
    pub(super) fn note(&mut self, now: Instant, trouble: &Trouble) {
        let lately = self.told_trouble.is_some_and(|told| now.since(told) < TELL_TROUBLE_EVERY);
        if trouble.is_probe || lately {
            return;
        }
        self.told_trouble = Some(now);
        let event = if trouble.is_too_large() { "datagram_too_large" } else { "send_failed" };
        self.keep(json!({
            "at_ns": now.0, "event": event, "address": trouble.to.to_string(), "bytes": trouble.bytes,
            "reason": trouble.advice(),
        }));
    }

    /// Notes a datagram of another version of the format. Anybody may send one, so the lines are
    /// few; the next one says how many came in between.
    pub(super) fn note_version(&mut self, now: Instant, from: &str, have: u8, speaks: u8) {
        let lately = self.told_version.is_some_and(|told| now.since(told) < TELL_VERSION_EVERY);
        if lately {
            self.other_versions += 1;
            return;
        }
        self.told_version = Some(now);
        let before = std::mem::take(&mut self.other_versions);
        let older = if have < speaks { "that party is older" } else { "this side is older" };
        self.keep(json!({
            "at_ns": now.0, "event": "other_version", "address": from, "version": have,
            "own_version": speaks, "not_told_before": before,
            "reason": format!("{older}: install the same release at both ends"),
        }));
    }

    /// Notes a datagram that the keys kept out. Anybody may send one, so the lines are few; the next one of
    /// the reason says how many came in between.
    pub(super) fn note_key(
        &mut self,
        now: Instant,
        from: &str,
        reason: &'static str,
        advice: &str,
    ) {
        let mut before = 0;
        if let Some((told, since)) = self.told_keys.get_mut(reason) {
            if now.since(*told) < TELL_KEY_EVERY {
                *since += 1;
                return;
            }
            before = *since;
        }
        self.told_keys.insert(reason, (now, 0));
        self.keep(json!({
            "at_ns": now.0, "event": "key_refused", "address": from, "reason": reason,
            "not_told_before": before, "advice": advice,
        }));
    }

    /// Key files were replaced: the engine takes the new keys, or goes on with those that it has.
    pub(super) fn take_renewed<E: Engine>(
        &mut self,
        engine: &mut Sealed<E>,
        now: Instant,
        sources: &Sources,
        renewed: Renewed,
    ) {
        let files = sources.files().collect::<Vec<_>>().join(", ");
        match renewed {
            Renewed::Nothing => {}
            Renewed::Unreadable(error) => self.keep(json!({
                "at_ns": now.0, "event": "keys_unreadable", "file": files, "reason": error.to_string(),
            })),
            Renewed::Keys(secrets) => {
                let until = secrets.keys().iter().filter(|key| !key.is_over(now));
                let until_s = until.filter_map(|key| key.until).max().map(|at| at.0 / 1_000_000_000);
                engine.rekey(now, secrets);
                self.keep(json!({
                    "at_ns": now.0, "event": "keys_renewed", "file": files, "old_until_s": until_s,
                }));
            }
        }
    }

    /// Events since the last call.
    pub(super) fn take(&mut self) -> Vec<Value> {
        self.events.drain(..).collect()
    }

    /// Events that were not fetched in time.
    pub(super) const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The newest events, the oldest of them first.
    pub(super) fn recent(&self) -> Vec<Value> {
        self.recent.iter().cloned().collect()
    }

    fn keep(&mut self, event: Value) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(event.clone());
        if self.events.len() == LIMIT {
            self.events.pop_front();
            self.forgotten += 1;
        }
        self.events.push_back(event);
    }
}
