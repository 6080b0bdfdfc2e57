//! The list of the jobs that a role serves: the key of each, and what it may take.

use crate::error::StartError;
use crate::keys::{self, Given, KeyText, Takes};
use olaf_engine::JobId;
use olaf_engine::link::Shares;
use olaf_engine::party::{Tenant, Tenants};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A job of the list.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JobConfig {
    /// Its number.
    pub job: u32,
    /// File with its key. Off: a key of `key_files` is good for it, or none is needed.
    #[serde(default)]
    pub key_file: Option<String>,
    /// Most parameters of its model. Off: as many as the role takes.
    #[serde(default)]
    pub max_parameters: Option<u32>,
    /// Most workers at once. Off: as many as the role takes.
    #[serde(default)]
    pub max_workers: Option<u32>,
    /// Most clusters at once. Off: no limit.
    #[serde(default)]
    pub max_clusters: Option<u32>,
    /// Its share of the links and slots of the engine `queue`. Off: that of `shares`, or 1.
    #[serde(default)]
    pub share: Option<u32>,
    /// Slots of the engine `queue` that are its own: it takes no more. Off: its share of all.
    #[serde(default)]
    pub slots: Option<usize>,
}

/// The limits of the jobs in the list; without a list every job is served, without limits.
pub(super) fn tenants(jobs: &[JobConfig]) -> Result<Tenants, StartError> {
    let mut seen = BTreeSet::new();
    let mut listed = Vec::new();
    for (at, one) in jobs.iter().enumerate() {
        let JobConfig { job, max_parameters, max_workers, max_clusters, .. } = *one;
        if !seen.insert(job) {
            return Err(wrong(at, &format!("job {job} is in the list twice")));
        }
        let tenant = Tenant { max_parameters, max_workers, max_clusters };
        let tenant = tenant.check().map_err(|error| wrong(at, &error.to_string()))?;
        if one.share.is_some_and(|share| Shares::default().with(JobId(job), share).check().is_err())
        {
            return Err(wrong(at, "share: must be from 1 to 1000"));
        }
        if one.slots == Some(0) {
            return Err(wrong(at, "slots: must be at least 1"));
        }
        listed.push((JobId(job), tenant));
    }
    Ok(if jobs.is_empty() { Tenants::default() } else { Tenants::only(listed) })
}

/// The shares that are named by job, and those of the list.
pub(super) fn shares(named: &Shares, jobs: &[JobConfig]) -> Result<Shares, StartError> {
    let mut all = named.clone();
    for (at, one) in jobs.iter().enumerate() {
        if let Some(slots) = one.slots {
            all = all.with_slots(JobId(one.job), slots);
        }
        let Some(share) = one.share else { continue };
        if named.names(JobId(one.job)) {
            let what = format!("share: `shares` names job {} too: set one of the two", one.job);
            return Err(wrong(at, &what));
        }
        all = all.with(JobId(one.job), share);
    }
    Ok(all)
}

/// All keys of a role: of its files, of the program that started it, and of its jobs.
pub(super) fn secrets(
    takes: Takes,
    files: &[String],
    texts: &[KeyText],
    jobs: &[JobConfig],
) -> Result<Option<Given>, StartError> {
    let of_jobs: Vec<(u32, &str)> =
        jobs.iter().filter_map(|one| Some((one.job, one.key_file.as_deref()?))).collect();
    let found = keys::secrets_of(takes, "key_files", files, texts, &of_jobs)?;
    let Some(Given { secrets, .. }) = &found else { return Ok(None) };
    let shut_out = |one: &&JobConfig| !secrets.keys().iter().any(|key| key.allows(Some(one.job)));
    match jobs.iter().find(shut_out) {
        Some(JobConfig { job, .. }) => Err(StartError::Config(format!(
            "jobs: job {job} has no key, and the others have: nobody could join it; give it one \
             (olaf keys new FILE --job {job}; key_file = \"FILE\")"
        ))),
        None => Ok(found),
    }
}

/// Returns true if a role asks for keys.
pub(super) fn has_keys(files: &[String], texts: &[KeyText], jobs: &[JobConfig]) -> bool {
    !files.is_empty() || !texts.is_empty() || jobs.iter().any(|one| one.key_file.is_some())
}

/// Returns true if a role asks for keys, and each of them is secret.
pub(super) fn has_secret_keys(files: &[String], texts: &[KeyText], jobs: &[JobConfig]) -> bool {
    let listed = jobs.iter().filter_map(|one| one.key_file.as_deref());
    let all = files.iter().map(String::as_str).chain(listed);
    keys::are_secret(all, texts)
}

fn wrong(at: usize, what: &str) -> StartError {
    StartError::Config(format!("jobs[{at}]: {what}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::keys::Key;

    fn jobs(json: &str) -> Vec<JobConfig> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_list_is_read_with_its_limits() {
        let listed = jobs(r#"[{"job": 1, "max_workers": 2}, {"job": 7}]"#);
        let found = tenants(&listed).unwrap();
        assert_eq!(found.of(JobId(1)).unwrap().max_workers, Some(2));
        assert_eq!((found.of(JobId(7)), found.of(JobId(2))), (Some(Tenant::default()), None));
        assert!(tenants(&[]).unwrap().of(JobId(2)).is_some());
        for (json, told) in [
            (r#"[{"job": 1}, {"job": 1}]"#, "jobs[1]: job 1 is in the list twice"),
            (r#"[{"job": 1, "max_workers": 0}]"#, "jobs[0]: max_workers"),
        ] {
            let error = tenants(&jobs(json)).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        assert!(serde_json::from_str::<Vec<JobConfig>>(r#"[{"job": 1, "keyfile": "a"}]"#).is_err());
    }

    #[test]
    fn a_share_of_the_list_joins_those_that_are_named() {
        let named = Shares::default().with(JobId(5), 3);
        let found = shares(&named, &jobs(r#"[{"job": 1, "share": 2}, {"job": 5}]"#)).unwrap();
        let of = [1, 5, 6].map(|job| found.of(Some(JobId(job))));
        assert_eq!(of, [2, 3, 1]);
        let error = shares(&named, &jobs(r#"[{"job": 5, "share": 2}]"#)).unwrap_err().to_string();
        assert!(error.contains("jobs[0]: share: `shares` names job 5 too"), "{error}");
    }

    #[test]
    fn slots_of_the_list_are_the_jobs_own() {
        let listed = jobs(r#"[{"job": 1, "slots": 3}, {"job": 5}]"#);
        let found = shares(&Shares::default(), &listed).unwrap();
        let of = [1, 5].map(|job| found.slots_of(Some(JobId(job))));
        assert_eq!((of, found.own_slots()), ([Some(3), None], 3));
        let none = jobs(r#"[{"job": 1, "slots": 0}]"#);
        let error = tenants(&none).unwrap_err().to_string();
        assert!(error.contains("jobs[0]: slots: must be at least 1"), "{error}");
    }

    #[test]
    fn a_key_in_the_list_is_good_for_its_job_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, job| {
            let path = folder.path().join(name);
            Key::generate(job).write(&path).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (any, of_two) = (file("any.key", None), file("two.key", Some(2)));
        let one = |job, key_file: &str| JobConfig {
            key_file: Some(key_file.into()),
            ..jobs(&format!(r#"[{{"job": {job}}}]"#)).remove(0)
        };
        let secrets = |listed: &[JobConfig]| super::secrets(Takes::Both, &[], &[], listed);
        let both = secrets(&[one(1, &any), one(2, &of_two)]).unwrap().unwrap().secrets;
        let of: Vec<_> = both.keys().iter().map(|key| key.job).collect();
        assert_eq!(of, [Some(1), Some(2)]);
        let error = secrets(&[one(1, &of_two)]).err().unwrap().to_string();
        assert!(error.contains("two.key") && error.contains("is for job 2"), "{error}");
        let unlisted = jobs(r#"[{"job": 3}]"#).remove(0);
        let error = secrets(&[one(1, &any), unlisted.clone()]).err().unwrap().to_string();
        assert!(error.contains("job 3 has no key"), "{error}");
        assert!(secrets(&[unlisted]).unwrap().is_none());
    }

    #[test]
    fn who_signs_models_takes_no_key_of_a_switch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switch.key");
        let key = Key::generate(None);
        key.for_switch().write(&path).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let job = JobConfig { key_file: Some(path.clone()), ..jobs(r#"[{"job": 1}]"#).remove(0) };
        let text = serde_json::to_string(&key.for_switch().text()).unwrap();
        let text: KeyText = serde_json::from_str(&text).unwrap();
        let (files, texts, jobs) = ([path], [text], [job]);
        for (at, files, texts, jobs) in [
            ("key_files: ", &files[..], &[][..], &[][..]),
            ("key_files: ", &[], &texts, &[]),
            ("jobs: ", &[], &[], &jobs),
        ] {
            let error = super::secrets(Takes::Jobs, files, texts, jobs).err().unwrap().to_string();
            assert!(error.starts_with(at) && error.contains("a switch's key"), "{error}");
            assert!(super::secrets(Takes::Both, files, texts, jobs).unwrap().is_some());
        }
        assert_eq!(keys::files_of_jobs(files.iter().map(String::as_str)), [""; 0]);
    }
}
