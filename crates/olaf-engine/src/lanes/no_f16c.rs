//! Where no processor has F16C.

use olaf_wire::reduce::Operator;

/// Has no value: the portable kernels do the work.
#[derive(Clone, Copy)]
pub(super) enum F16c {}

impl F16c {
    pub(super) const fn new() -> Option<Self> {
        None
    }

    pub(super) const fn begin(self, _sum: &mut [u8], _incoming: &[u8]) -> bool {
        match self {}
    }

    pub(super) const fn combine(self, _sum: &mut [u8], _incoming: &[u8], _: Operator) -> bool {
        match self {}
    }

    pub(super) const fn write(self, _sum: &[u8], _out: &mut [u8]) {
        match self {}
    }
}
