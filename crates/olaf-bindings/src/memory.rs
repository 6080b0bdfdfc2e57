//! The memory of a numpy array, which an operation reads and writes while Python goes on.

use numpy::npyffi::flags::NPY_ARRAY_WRITEABLE;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use olaf_host::collective::Buffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

/// The bytes of an array. The array lives at least as long.
pub(crate) struct Memory {
    start: *mut u8,
    len: usize,
    /// Keeps the memory where it is: numpy refuses to resize an array that is referred to.
    _array: Arc<Py<PyUntypedArray>>,
}

// SAFETY: the memory belongs to an array that `_array` keeps alive, and not to a thread. The one
// owner of this value is the only one here that reads or writes it; parts do not overlap.
#[allow(unsafe_code, reason = "a raw pointer is not Send by itself")]
unsafe impl Send for Memory {}

impl Memory {
    /// The memory of an array whose items have `item` bytes.
    ///
    /// The program must leave the array alone until its operation has ended, as for every
    /// asynchronous all-reduce: what it writes meanwhile may or may not be in the sum. No length or
    /// address depends on the contents, so that such a program gets wrong numbers and nothing else.
    pub(crate) fn of(array: &Bound<'_, PyAny>, item: usize) -> PyResult<Self> {
        let Ok(array) = array.cast::<PyUntypedArray>() else {
            let kind = array.get_type();
            return Err(PyTypeError::new_err(format!(
                "expected a numpy array, not {}",
                kind.name()?
            )));
        };
        if !array.is_c_contiguous() {
            return Err(PyValueError::new_err("the array is not C-contiguous"));
        }
        let found = array.dtype().itemsize();
        if found != item {
            return Err(PyValueError::new_err(format!(
                "the array has items of {found} bytes; its lanes have {item}"
            )));
        }
        let len = array.len() * item;
        #[allow(unsafe_code, reason = "numpy has no other way to the memory of an untyped array")]
        // SAFETY: `array` is a live numpy array, whose object these fields belong to. Its memory has
        // `len` bytes from `data` on, because the array is contiguous.
        let (start, flags) = unsafe {
            let object = &*array.as_array_ptr();
            (object.fields.data.cast::<u8>(), object.fields.flags)
        };
        if flags & NPY_ARRAY_WRITEABLE == 0 {
            return Err(PyValueError::new_err("the array is read-only: pass a writable one"));
        }
        Ok(Self { start, len, _array: Arc::new(array.clone().unbind()) })
    }

    /// A part of the memory. The caller uses no two parts that overlap, nor a part and the whole.
    ///
    /// # Panics
    /// When the memory does not have these bytes.
    pub(crate) fn part(&self, part: Range<usize>) -> Self {
        assert!(part.start <= part.end && part.end <= self.len, "a part lies inside");
        let start = self.start.wrapping_add(part.start);
        Self { start, len: part.len(), _array: self._array.clone() }
    }
}

impl Buffer for Memory {
    #[allow(unsafe_code, reason = "the memory is numpy's")]
    fn bytes(&self) -> &[u8] {
        // SAFETY: see `of`; an empty array may have no address.
        if self.len == 0 { &[] } else { unsafe { slice::from_raw_parts(self.start, self.len) } }
    }

    #[allow(unsafe_code, reason = "the memory is numpy's")]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: see `of`; this is the only reference from here.
        if self.len == 0 {
            &mut []
        } else {
            unsafe { slice::from_raw_parts_mut(self.start, self.len) }
        }
    }
}
