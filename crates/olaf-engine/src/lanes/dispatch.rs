//! Kernels for wider registers.

/// Compiles a kernel for wider registers as well, and takes the widest that the processor has. The
/// kernel's number is how many lanes of 32 bits four such registers have; a number after the kernel's
/// name takes the place of the one for AVX-512.
macro_rules! dispatched {
    ($name:ident, $kernel:ident, ($($argument:ident: $type:ty),*) -> $out:ty) => {
        dispatched!($name, $kernel, 64, ($($argument: $type),*) -> $out);
    };
    ($name:ident, $kernel:ident, $widest:literal, ($($argument:ident: $type:ty),*) -> $out:ty) => {
        #[cfg(target_arch = "x86_64")]
        #[allow(unsafe_code, reason = "code for wider registers is sound only where they are")]
        fn $name($($argument: $type),*) -> $out {
            cpufeatures::new!(avx2, "avx2");
            #[cfg(has_avx512)]
            cpufeatures::new!(avx512, "avx512f");

            #[target_feature(enable = "avx2")]
            fn wide($($argument: $type),*) -> $out {
                $kernel::<32>($($argument),*)
            }
            #[cfg(has_avx512)]
            #[target_feature(enable = "avx512f")]
            fn widest($($argument: $type),*) -> $out {
                $kernel::<$widest>($($argument),*)
            }

            #[cfg(has_avx512)]
            if $crate::lanes::dispatch::allows(64) && avx512::get() {
                // SAFETY: the processor was just seen to have AVX-512F, all that this asks for.
                return unsafe { widest($($argument),*) };
            }
            if $crate::lanes::dispatch::allows(32) && avx2::get() {
                // SAFETY: the processor was just seen to have AVX2, all that this asks for.
                return unsafe { wide($($argument),*) };
            }
            $kernel::<16>($($argument),*)
        }

        #[cfg(not(target_arch = "x86_64"))]
        fn $name($($argument: $type),*) -> $out {
            $kernel::<16>($($argument),*)
        }
    };
}

pub(super) use dispatched;

/// Returns true if kernels may use registers so wide that four of them have `lanes` lanes of 32 bits.
/// Always, outside of tests.
#[cfg(not(test))]
#[inline(always)]
pub(super) const fn allows(_lanes: usize) -> bool {
    true
}

#[cfg(test)]
pub(super) use testing::{allows, with_at_most};

/// The number, which the compiler no longer knows.
///
/// A kernel combines what it stores with ones from here. Otherwise the compiler spoils two kinds of
/// loops. It replaces a loop that stores the lanes that it has loaded by a call of `memcpy` and a second
/// pass. It writes masked stores (`vmaskmov`) for a loop that keeps some lanes and replaces others, and a
/// masked store takes many cycles.
#[inline(always)]
pub(super) fn opaque<T>(number: T) -> T {
    core::hint::black_box(number)
}

#[cfg(test)]
mod testing {
    extern crate std;
    use core::cell::Cell;

    std::thread_local!(static MOST: Cell<usize> = const { Cell::new(usize::MAX) });

    pub(in super::super) fn allows(lanes: usize) -> bool {
        lanes <= MOST.get()
    }

    /// Runs `test` with kernels of at most that width: 16, 32 or 64. A machine would otherwise test
    /// its own width alone.
    pub(in super::super) fn with_at_most<T>(lanes: usize, test: impl FnOnce() -> T) -> T {
        let before = MOST.replace(lanes);
        let out = test();
        MOST.set(before);
        out
    }
}
