//! The queue disciplines that a switch can be told to use: the one list of them.
//!
//! Everything that names disciplines reads this table: configuration, replay, simulation, the C
//! library, and through `olaf._olaf.queues()` the command line, its help and the settings. A new
//! discipline is a module beside these and a line here.

use crate::keys::{Named, names};
use crate::queue::discipline::Discipline;
use crate::queue::fifo::Fifo;
use crate::queue::freshest::Freshest;
use crate::queue::merging::{Gate, Merging};
use alloc::boxed::Box;
use alloc::string::String;

/// Of each discipline: its kind, its name, how to make it with a number of slots and a reward gate,
/// and its description, which is printed after its name.
macro_rules! queues {
    ($($kind:ident, $name:literal, $make:expr, $about:literal;)+) => {
        /// Which discipline the uplink's queue follows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum QueueKind {
            $(#[doc = $about] $kind,)+
        }

        impl QueueKind {
            /// Every kind and its name.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($name, Self::$kind)),+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }

            /// What it does, to be read after its name.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$kind => $about),+ }
            }

            /// An empty queue of this kind.
            #[must_use]
            pub fn queue(self, slots: usize, gate: Gate) -> Box<dyn Discipline + Send> {
                fn boxed<D: Discipline + Send + 'static>(
                    make: impl Fn(usize, Gate) -> D, slots: usize, gate: Gate,
                ) -> Box<dyn Discipline + Send> {
                    Box::new(make(slots, gate))
                }
                match self { $(Self::$kind => boxed($make, slots, gate)),+ }
            }
        }
    };
}

queues! {
    Merging, "olaf", Merging::new, "replaces and merges updates while they wait (OLAF §4)";
    Fifo, "fifo", |slots, _| Fifo::new(slots), "sends updates in the order of their arrival and merges nothing";
    Freshest, "freshest", Freshest::new, "merges as olaf does and first sends the update that makes a model younger by most";
}

impl QueueKind {
    /// The kind of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::of_name(name)
    }

    /// All names as an error lists them: `olaf, fifo or freshest`.
    #[must_use]
    pub fn names() -> String {
        names::<Self>()
    }
}

impl Named for QueueKind {
    const NAMES: &'static [(&'static str, Self)] = Self::ALL;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_back_and_makes_an_empty_queue() {
        for (name, kind) in QueueKind::ALL {
            assert_eq!(QueueKind::parse(name), Some(*kind));
            assert_eq!(kind.name(), *name);
            assert!(kind.queue(3, None).used() == 0 && !kind.about().is_empty(), "{name}");
        }
        assert_eq!(QueueKind::parse("lifo"), None);
    }

    #[test]
    fn an_error_lists_all_names() {
        let names = QueueKind::names();
        let (last, _) = QueueKind::ALL.last().expect("there are some");
        assert!(QueueKind::ALL.iter().all(|(name, _)| names.contains(name)), "{names}");
        assert!(names.ends_with(&alloc::format!(" or {last}")), "{names}");
    }
}
