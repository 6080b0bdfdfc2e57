//! The jobs that a switch or a server serves, and what each of them may take.

use crate::ids::JobId;
use crate::keys::ConfigError;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use serde::{Deserialize, Serialize};

/// What one job may take. Off: as much as the switch or the server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Tenant {
    /// Parameters of its model.
    pub max_parameters: Option<u32>,
    /// Workers at once.
    pub max_workers: Option<u32>,
    /// Clusters at once.
    pub max_clusters: Option<u32>,
}

impl Tenant {
    /// The same, when it can be.
    ///
    /// # Errors
    /// The first limit that lets nobody in.
    pub fn check(self) -> Result<Self, ConfigError> {
        let at_least_one =
            |key, limit: Option<u32>| ConfigError::unless_positive(key, limit != Some(0));
        at_least_one("max_parameters", self.max_parameters)?;
        at_least_one("max_workers", self.max_workers)?;
        at_least_one("max_clusters", self.max_clusters)?;
        Ok(self)
    }

    /// Returns true if a model of that size is within the limit.
    #[must_use]
    pub fn takes_parameters(&self, parameters: u32) -> bool {
        self.max_parameters.is_none_or(|most| parameters <= most)
    }

    /// The most parameters of a model or of an operation of the job.
    #[must_use]
    pub fn most_parameters(&self) -> u64 {
        self.max_parameters.map_or(u64::MAX, u64::from)
    }

    /// Returns true if one more worker fits beside that many.
    #[must_use]
    pub fn takes_worker(&self, workers: usize) -> bool {
        self.max_workers.is_none_or(|most| workers < most as usize)
    }

    /// Returns true if that many workers are within the limit.
    #[must_use]
    pub fn takes_workers(&self, workers: usize) -> bool {
        self.max_workers.is_none_or(|most| workers <= most as usize)
    }

    /// Returns true if one more cluster fits beside that many.
    #[must_use]
    pub fn takes_cluster(&self, clusters: usize) -> bool {
        self.max_clusters.is_none_or(|most| clusters < most as usize)
    }
}

/// The jobs that are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenants(Option<Arc<BTreeMap<JobId, Tenant>>>);

impl Tenants {
    /// These jobs and no others. The default is every job, without limits.
    pub fn only(listed: impl IntoIterator<Item = (JobId, Tenant)>) -> Self {
        Self(Some(Arc::new(listed.into_iter().collect())))
    }

    /// Returns true if there is a list, and it names that job.
    #[must_use]
    pub fn names(&self, job: JobId) -> bool {
        self.0.as_ref().is_some_and(|listed| listed.contains_key(&job))
    }

    /// What that job may take; none: it is not served.
    #[must_use]
    pub fn of(&self, job: JobId) -> Option<Tenant> {
        match &self.0 {
            None => Some(Tenant::default()),
            Some(listed) => listed.get(&job).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_list_every_job_is_served_without_limits() {
        let tenant = Tenants::default().of(JobId(77)).expect("every job");
        assert!(tenant.takes_parameters(u32::MAX));
        assert!(tenant.takes_worker(usize::MAX) && tenant.takes_cluster(usize::MAX));
    }

    #[test]
    fn a_list_serves_its_own_jobs_up_to_their_limits() {
        let small =
            Tenant { max_parameters: Some(10), max_workers: Some(2), max_clusters: Some(1) };
        let tenants = Tenants::only([(JobId(1), small), (JobId(2), Tenant::default())]);
        let one = tenants.of(JobId(1)).expect("listed");
        assert!(one.takes_parameters(10) && !one.takes_parameters(11));
        assert!(one.takes_worker(1) && !one.takes_worker(2));
        assert!(one.takes_cluster(0) && !one.takes_cluster(1));
        assert!(tenants.names(JobId(1)) && !tenants.names(JobId(3)));
        assert!(!Tenants::default().names(JobId(1)));
        assert_eq!((tenants.of(JobId(2)), tenants.of(JobId(3))), (Some(Tenant::default()), None));
    }

    #[test]
    fn a_limit_that_lets_nobody_in_is_refused() {
        let none = Tenant { max_clusters: Some(0), ..Tenant::default() };
        assert_eq!(none.check().expect_err("nobody").key, "max_clusters");
    }
}
