//! How old a server's clusters are of late: what its answers tell senders to compare themselves by.

use crate::memory::{handle, input, output};
use crate::result::*;
use olaf_engine::Instant;
use olaf_host::recent_age::{RecentAge, mean_of};
use std::collections::BTreeMap;

/// Ages of late of a server's clusters, behind a pointer.
pub struct olaf_recent_ages(Handle<BTreeMap<u32, RecentAge>>);

/// Makes the ages of a server of no clusters. Free them with `olaf_recent_ages_free`.
///
/// # Safety
/// `ages` is null or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_recent_ages_new(ages: *mut *mut olaf_recent_ages) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let ages = unsafe { output(ages) }?;
        ages.set(Box::into_raw(Box::new(olaf_recent_ages(Handle::new(BTreeMap::new())))));
        Ok(())
    })
}

/// Frees ages; null is nothing to free.
///
/// # Safety
/// `ages` is null, or came from `olaf_recent_ages_new` and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_recent_ages_free(ages: *mut olaf_recent_ages) {
    if !ages.is_null() {
        guard(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(ages) });
            Ok(())
        });
    }
}

/// A delivery of a cluster at `now_ns`, whose newest contribution was generated at `generated_ns`.
///
/// # Safety
/// `ages` is null or from `olaf_recent_ages_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_recent_ages_deliver(
    ages: *mut olaf_recent_ages,
    cluster: u32,
    now_ns: u64,
    generated_ns: u64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let ages = unsafe { handle(ages) }?;
        ages.0.run(|ages| {
            ages.entry(cluster).or_default().deliver(Instant(now_ns), generated_ns);
            Ok(())
        })
    })
}

/// The age of a cluster of late, and the mean over all clusters, as answers carry them:
/// microseconds; 0: not known.
///
/// # Safety
/// `ages` is null or from `olaf_recent_ages_new`; `own_us` and `mean_us` are null or point to room
/// for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_recent_ages_get(
    ages: *const olaf_recent_ages,
    cluster: u32,
    now_ns: u64,
    own_us: *mut u32,
    mean_us: *mut u32,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (ages, own_us, mean_us) = unsafe { (input(ages)?, output(own_us)?, output(mean_us)?) };
        let now = Instant(now_ns);
        let (own, mean) = ages.0.read(|ages| {
            let own = ages.get(&cluster).and_then(|age| age.mean_ns(now));
            Ok((own.unwrap_or_default(), mean_of(ages.values(), now)))
        })?;
        // A cast of a float stops at the largest number there is.
        own_us.set((own / 1000.0) as u32);
        mean_us.set((mean / 1000.0) as u32);
        Ok(())
    })
}
