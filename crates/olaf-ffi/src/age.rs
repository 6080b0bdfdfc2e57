//! How old what a server knows of a cluster is.

use crate::memory::{handle, input, output};
use crate::result::*;
use olaf_engine::Instant;
use olaf_host::age::{AgeOfModel, jain};

/// The Age-of-Model of one cluster at its server (OLAF §2.2, §6), behind a pointer.
pub struct olaf_age(Handle<AgeOfModel>);

/// Makes the age of a cluster that is not observed yet. Free it with `olaf_age_free`.
///
/// # Safety
/// `age` is null or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_age_new(age: *mut *mut olaf_age) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let age = unsafe { output(age) }?;
        age.set(Box::into_raw(Box::new(olaf_age(Handle::new(AgeOfModel::new())))));
        Ok(())
    })
}

/// Frees an age; null is nothing to free.
///
/// # Safety
/// `age` is null, or came from `olaf_age_new` and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_age_free(age: *mut olaf_age) {
    if !age.is_null() {
        guard(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(age) });
            Ok(())
        });
    }
}

/// Counts the age from `start_ns` on, as the time since then until something is delivered. Call it
/// for every cluster at the first delivery of any, so that a cluster that starves has an age, too.
/// Changes nothing where the cluster is observed already.
///
/// # Safety
/// `age` is null or from `olaf_age_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_age_observe_from(age: *mut olaf_age, start_ns: u64) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let age = unsafe { handle(age) }?;
        age.0.run(|age| {
            age.observe_from(Instant(start_ns));
            Ok(())
        })
    })
}

/// A delivery at `now_ns` whose newest contribution was generated at `generated_ns`. A cluster that
/// is not observed yet is from now on.
///
/// # Safety
/// `age` is null or from `olaf_age_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_age_deliver(
    age: *mut olaf_age,
    now_ns: u64,
    generated_ns: u64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let age = unsafe { handle(age) }?;
        age.0.run(|age| {
            age.deliver(Instant(now_ns), generated_ns);
            Ok(())
        })
    })
}

/// The age at `now_ns`, nanoseconds. `OLAF_RESULT_NOTHING`: the cluster is not observed yet.
///
/// # Safety
/// `age` is null or from `olaf_age_new`; `age_ns` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_age_now(
    age: *const olaf_age,
    now_ns: u64,
    age_ns: *mut u64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (age, age_ns) = unsafe { (input(age)?, output(age_ns)?) };
        let now = age.0.read(|age| age.now(Instant(now_ns)).ok_or(OLAF_RESULT_NOTHING))?;
        age_ns.set(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
        Ok(())
    })
}

/// Time average of the age from when it is observed to `end_ns`, nanoseconds.
/// `OLAF_RESULT_NOTHING`: that is no time at all.
///
/// # Safety
/// `age` is null or from `olaf_age_new`; `mean_ns` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_age_mean(
    age: *const olaf_age,
    end_ns: u64,
    mean_ns: *mut f64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (age, mean_ns) = unsafe { (input(age)?, output(mean_ns)?) };
        mean_ns.set(age.0.read(|age| age.mean_ns(Instant(end_ns)).ok_or(OLAF_RESULT_NOTHING))?);
        Ok(())
    })
}

/// Mean of the ages just before each delivery of news but the first, nanoseconds.
/// `OLAF_RESULT_NOTHING`: there was no such delivery.
///
/// # Safety
/// `age` is null or from `olaf_age_new`; `peak_ns` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_age_peak_mean(
    age: *const olaf_age,
    peak_ns: *mut f64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (age, peak_ns) = unsafe { (input(age)?, output(peak_ns)?) };
        peak_ns.set(age.0.read(|age| age.peak_mean_ns().ok_or(OLAF_RESULT_NOTHING))?);
        Ok(())
    })
}

/// Jain's fairness index of `count` non-negative values. `OLAF_RESULT_NOTHING`: of no values.
///
/// # Safety
/// `values` is null or `count` numbers; `index` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_jain(
    values: *const f64,
    count: usize,
    index: *mut f64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let index = unsafe { output(index) }?;
        if count == 0 {
            return Err(OLAF_RESULT_NOTHING);
        }
        // SAFETY: the first of `count` numbers by the caller's promise.
        unsafe { input(values) }?;
        // SAFETY: not null, aligned, and so many numbers by the caller's promise.
        let values = unsafe { core::slice::from_raw_parts(values, count) };
        index.set(jain(values.iter().copied()).ok_or(OLAF_RESULT_NOTHING)?);
        Ok(())
    })
}
