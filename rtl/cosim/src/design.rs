//! A verilated design behind a C interface. The only unsafe code of this crate is here.

use std::ffi::c_void;

/// The functions of a build: those of `shim/shim.h`, and one that moves its pins.
pub struct Shim<In, Out> {
    pub(crate) new: unsafe extern "C" fn(u32) -> *mut c_void,
    pub(crate) free: unsafe extern "C" fn(*mut c_void),
    pub(crate) tick: unsafe extern "C" fn(*mut c_void),
    pub(crate) settle: unsafe extern "C" fn(*mut c_void, *const In, *mut Out),
}

/// A design with its state.
pub(crate) struct Design<In: 'static, Out: 'static> {
    shim: &'static Shim<In, Out>,
    state: *mut c_void,
}

impl<In, Out: Default> Design<In, Out> {
    /// A design whose registers begin with random bits of `seed` where the source has no value.
    pub(crate) fn new(shim: &'static Shim<In, Out>, seed: u64) -> Self {
        // The simulator's own generator has 31 bits.
        let seed = (seed ^ (seed >> 31)) as u32 & 0x7fff_ffff;
        // SAFETY: `new` takes any number.
        Self { shim, state: unsafe { (shim.new)(seed) } }
    }

    /// The outputs that belong to these inputs before the clock's next edge.
    pub(crate) fn settle(&mut self, pins: &In) -> Out {
        let mut out = Out::default();
        // SAFETY: `state` comes from `new` of this shim, which reads one `In` and writes one `Out`.
        unsafe { (self.shim.settle)(self.state, pins, &mut out) };
        out
    }

    /// A rising edge of the clock.
    pub(crate) fn tick(&mut self) {
        // SAFETY: `state` comes from `new` of this shim.
        unsafe { (self.shim.tick)(self.state) }
    }
}

impl<In, Out> Drop for Design<In, Out> {
    fn drop(&mut self) {
        // SAFETY: `state` comes from `new` of this shim and is freed once.
        unsafe { (self.shim.free)(self.state) }
    }
}

/// Declares the functions of a build and names their [`Shim`].
macro_rules! shim {
    ($(#[$doc:meta])* $shim:ident: $in:ty => $out:ty, $new:ident, $free:ident, $tick:ident, $settle:ident) => {
        unsafe extern "C" {
            fn $new(seed: u32) -> *mut std::ffi::c_void;
            fn $free(design: *mut std::ffi::c_void);
            fn $tick(design: *mut std::ffi::c_void);
            fn $settle(design: *mut std::ffi::c_void, pins: *const $in, out: *mut $out);
        }
        $(#[$doc])*
        pub static $shim: $crate::Shim<$in, $out> =
            $crate::Shim { new: $new, free: $free, tick: $tick, settle: $settle };
    };
}
pub(crate) use shim;
