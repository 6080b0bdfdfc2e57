//! Kernels for wider registers.

/// Compiles a kernel for wider registers as well, and takes the widest that the processor has. The
/// kernel's number is how many lanes of 32 bits four such registers have.
macro_rules! dispatched {
    ($name:ident, $kernel:ident, ($($argument:ident: $type:ty),*) -> $out:ty) => {
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
                $kernel::<64>($($argument),*)
            }

            #[cfg(has_avx512)]
            if avx512::get() {
                // SAFETY: the processor was just seen to have AVX-512F, all that this asks for.
                return unsafe { widest($($argument),*) };
            }
            if avx2::get() {
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
