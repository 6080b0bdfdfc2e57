//! Every read and write through a pointer of the caller's.
//!
//! What can be checked of a pointer is checked: null and alignment. That it points to as much
//! memory as it says, and that nobody else writes there meanwhile, is the caller's promise, made
//! once in each function's `Safety` section.

use crate::result::{OLAF_RESULT_BAD_POINTER, OLAF_RESULT_TOO_SHORT, olaf_result};
use core::ffi::{CStr, c_char};

/// Reads what a pointer points to.
///
/// # Safety
/// Null, misaligned, or valid for reads of a `T` for as long as the result is used.
pub(crate) unsafe fn input<'a, T>(pointer: *const T) -> Result<&'a T, olaf_result> {
    if !pointer.is_aligned() {
        return Err(OLAF_RESULT_BAD_POINTER);
    }
    // SAFETY: aligned, and null or valid by the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(OLAF_RESULT_BAD_POINTER)
}

/// Reads and changes what a pointer points to.
///
/// # Safety
/// Null, misaligned, or valid for reads and writes of a `T` and used by nobody else for as long
/// as the result is used.
pub(crate) unsafe fn handle<'a, T>(pointer: *mut T) -> Result<&'a mut T, olaf_result> {
    if !pointer.is_aligned() {
        return Err(OLAF_RESULT_BAD_POINTER);
    }
    // SAFETY: aligned, and null or valid by the caller's promise.
    unsafe { pointer.as_mut() }.ok_or(OLAF_RESULT_BAD_POINTER)
}

/// A place for a result, checked before anything is done for it.
pub(crate) struct Output<T>(*mut T);

/// Checks where a result is to go.
///
/// # Safety
/// Null, misaligned, or valid for a write of a `T` until the call ends; it need not be initialized.
pub(crate) unsafe fn output<T>(pointer: *mut T) -> Result<Output<T>, olaf_result> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(OLAF_RESULT_BAD_POINTER);
    }
    Ok(Output(pointer))
}

impl<T> Output<T> {
    /// Writes the result.
    pub(crate) fn set(self, value: T) {
        // SAFETY: `output` checked what can be checked; the rest is its caller's promise. `T` is
        // plain data, so nothing is lost by not dropping what was there.
        unsafe { self.0.write(value) }
    }
}

/// Reads `len` bytes. A null pointer stands for no bytes.
///
/// # Safety
/// Valid for reads of `len` bytes for as long as the result is used, or null.
pub(crate) unsafe fn bytes<'a>(pointer: *const u8, len: usize) -> Result<&'a [u8], olaf_result> {
    if len == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || isize::try_from(len).is_err() {
        return Err(OLAF_RESULT_BAD_POINTER);
    }
    // SAFETY: not null, not longer than memory may be, and valid by the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(pointer, len) })
}

/// Reads `count` values; a null pointer is no values.
///
/// # Safety
/// Valid for reads of `count` values for as long as the result is used, or null.
pub(crate) unsafe fn values<'a, T>(
    pointer: *const T,
    count: usize,
) -> Result<&'a [T], olaf_result> {
    if count == 0 {
        return Ok(&[]);
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|n| isize::try_from(n).is_ok());
    if pointer.is_null() || !pointer.is_aligned() || !fits {
        return Err(OLAF_RESULT_BAD_POINTER);
    }
    // SAFETY: not null, aligned, not longer than memory may be, and valid by the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// Copies items to a buffer of the caller's that has room for `capacity` of them.
///
/// # Safety
/// `pointer` is valid for writes of `capacity` items, or null.
pub(crate) unsafe fn fill<T: Copy>(
    items: &[T],
    pointer: *mut T,
    capacity: usize,
) -> Result<(), olaf_result> {
    if items.len() > capacity {
        return Err(OLAF_RESULT_TOO_SHORT);
    }
    if items.is_empty() {
        return Ok(());
    }
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(OLAF_RESULT_BAD_POINTER);
    }
    // SAFETY: aligned, with room for all of them by the caller's promise; ours are not the
    // caller's memory, so the two do not overlap.
    unsafe { core::ptr::copy_nonoverlapping(items.as_ptr(), pointer, items.len()) };
    Ok(())
}

/// Reads a C string.
///
/// # Safety
/// Null, or ends in a zero byte and stays as it is for as long as the result is used.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a CStr, olaf_result> {
    if pointer.is_null() {
        return Err(OLAF_RESULT_BAD_POINTER);
    }
    // SAFETY: not null, and a C string by the caller's promise.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// Writes a C string of at most `capacity` bytes; what does not fit is cut off. No room, no text.
///
/// # Safety
/// `pointer` is valid for writes of `capacity` bytes, or null.
pub(crate) unsafe fn fill_text(
    text: &str,
    pointer: *mut c_char,
    capacity: usize,
) -> Result<(), olaf_result> {
    let Some(room) = capacity.checked_sub(1) else { return Ok(()) };
    let mut bytes = text.as_bytes()[..text.len().min(room)].to_vec();
    bytes.push(0);
    // SAFETY: the caller's promise; a character and a byte are alike in memory.
    unsafe { fill(&bytes, pointer.cast(), capacity) }
}
