//! What every call returns.

use core::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What became of a call. Everything but `OLAF_RESULT_OK` leaves its outputs as they were, save a
/// length that the call's documentation says is written all the same.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum olaf_result {
    /// Done.
    OLAF_RESULT_OK = 0,
    /// There is nothing of what was asked for; no fault of anybody's.
    OLAF_RESULT_NOTHING = 1,
    /// An entry departs already: end its departure first.
    OLAF_RESULT_DEPARTING = 2,
    /// A pointer that must point to something is null, or not aligned for its type.
    OLAF_RESULT_BAD_POINTER = 3,
    /// A buffer is too short; the call says how much it takes.
    OLAF_RESULT_TOO_SHORT = 4,
    /// No queue of that kind: olaf or fifo, as a C string.
    OLAF_RESULT_UNKNOWN_KIND = 5,
    /// An argument is outside what its documentation allows.
    OLAF_RESULT_BAD_ARGUMENT = 6,
    /// The bytes do not begin as a datagram of Olaf does: pass them on untouched.
    OLAF_RESULT_NOT_OURS = 7,
    /// The bytes claim to be a datagram of Olaf and are none.
    OLAF_RESULT_MALFORMED = 8,
    /// The bytes are a datagram of Olaf, but of another kind.
    OLAF_RESULT_OTHER_KIND = 9,
    /// A mistake in Olaf, caught on its way to the caller; please report what stands on stderr.
    /// The handle it happened to answers `OLAF_RESULT_BROKEN` from now on.
    OLAF_RESULT_PANICKED = 10,
    /// An earlier call on this handle returned `OLAF_RESULT_PANICKED`: only free it.
    OLAF_RESULT_BROKEN = 11,
}

pub(crate) use olaf_result::*;

/// Every code and its words.
const TEXTS: [(olaf_result, &CStr); 12] = [
    (OLAF_RESULT_OK, c"done"),
    (OLAF_RESULT_NOTHING, c"there is nothing of what was asked for"),
    (OLAF_RESULT_DEPARTING, c"an entry departs already: end its departure first"),
    (OLAF_RESULT_BAD_POINTER, c"a pointer is null or not aligned for its type"),
    (OLAF_RESULT_TOO_SHORT, c"a buffer is too short"),
    (OLAF_RESULT_UNKNOWN_KIND, c"no queue of that kind"),
    (OLAF_RESULT_BAD_ARGUMENT, c"an argument is outside what its documentation allows"),
    (OLAF_RESULT_NOT_OURS, c"not an Olaf datagram"),
    (OLAF_RESULT_MALFORMED, c"a malformed Olaf datagram"),
    (OLAF_RESULT_OTHER_KIND, c"an Olaf datagram of another kind"),
    (OLAF_RESULT_PANICKED, c"a mistake in Olaf; see stderr"),
    (OLAF_RESULT_BROKEN, c"an earlier call on this handle panicked: free it"),
];

/// A code in words, a constant string; of a number that is no code, words that say so.
#[unsafe(no_mangle)]
pub extern "C" fn olaf_result_text(code: i32) -> *const c_char {
    let known = TEXTS.iter().find(|(result, _)| *result as i32 == code);
    known.map_or(c"no result of Olaf's", |(_, text)| text).as_ptr()
}

/// Runs what a call does and keeps panics in.
pub(crate) fn guard(act: impl FnOnce() -> Result<(), olaf_result>) -> olaf_result {
    // What a panic may have left half done is out of reach from here on: handles that were in use
    // are marked broken by `Handle::run`, and everything else was the closure's own.
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => OLAF_RESULT_OK,
        Ok(Err(code)) => code,
        Err(payload) => {
            // Its destructor is unknown code, which may panic again.
            core::mem::forget(payload);
            OLAF_RESULT_PANICKED
        }
    }
}

/// A value behind an opaque pointer, unusable once a call on it has panicked.
pub(crate) struct Handle<T> {
    value: T,
    broken: bool,
}

impl<T> Handle<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { value, broken: false }
    }

    /// Does something with the value.
    pub(crate) fn run<R>(
        &mut self,
        act: impl FnOnce(&mut T) -> Result<R, olaf_result>,
    ) -> Result<R, olaf_result> {
        if self.broken {
            return Err(OLAF_RESULT_BROKEN);
        }
        self.broken = true;
        let result = act(&mut self.value);
        self.broken = false;
        result
    }

    /// Reads the value.
    pub(crate) fn read<'a, R>(
        &'a self,
        act: impl FnOnce(&'a T) -> Result<R, olaf_result>,
    ) -> Result<R, olaf_result> {
        if self.broken { Err(OLAF_RESULT_BROKEN) } else { act(&self.value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code_and_breaks_its_handle() {
        let mut handle = Handle::new(5);
        let code = guard(|| handle.run(|_| -> Result<(), olaf_result> { panic!("on purpose") }));
        assert_eq!(code, OLAF_RESULT_PANICKED);
        assert_eq!(guard(|| handle.run(|_| Ok(()))), OLAF_RESULT_BROKEN);
        assert_eq!(guard(|| handle.read(|_| Ok(()))), OLAF_RESULT_BROKEN);
    }

    #[test]
    fn a_refusal_breaks_nothing() {
        let mut handle = Handle::new(5);
        let code = guard(|| handle.run(|_| -> Result<(), _> { Err(OLAF_RESULT_NOTHING) }));
        assert_eq!(code, OLAF_RESULT_NOTHING);
        assert_eq!(
            guard(|| handle.run(|value| {
                *value += 1;
                Ok(())
            })),
            OLAF_RESULT_OK
        );
        assert_eq!(handle.value, 6);
    }

    #[test]
    fn every_code_has_words_of_its_own() {
        for (at, (result, text)) in TEXTS.iter().enumerate() {
            assert_eq!(*result as usize, at);
            assert!(TEXTS[..at].iter().all(|(_, other)| other != text));
        }
    }
}
