//! Messages for people if a job cannot be joined: the reason, and the remedy.

use crate::keys::KeyAdvice;
use olaf_host::push_pull::worker::{TooNarrow, WorkerStatistics};
use olaf_wire::{Address, JobId, WelcomeCode};
use std::net::SocketAddr;
use std::time::Duration;

/// The switch or the server said no.
pub(super) fn refusal(code: WelcomeCode, own: &Address, parameters: usize) -> String {
    let Address { job, cluster, worker, .. } = own;
    match code {
        WelcomeCode::WorkerIdInUse => format!(
            "worker id {worker} of job {job} is in use by another living worker: give each worker \
             an id of its own, or give none: Olaf then draws one"
        ),
        WelcomeCode::WrongModelSize => format!(
            "the model of job {job} has another number of parameters than this worker's \
             {parameters}: use the network of the job's other workers, or another job id"
        ),
        WelcomeCode::WrongSegmentLanes => format!(
            "job {job} is cut into segments of another size: set neither segment_lanes nor \
             mtu_bytes, and this worker takes the job's size; or set the values that the job's \
             other workers have"
        ),
        WelcomeCode::UnknownJob => format!(
            "job {job} is not served there: add it to the `jobs` of the switch and of the server, if \
             they have a list, and to the switch's `routes`; or correct the job id"
        ),
        WelcomeCode::ModelTooLarge => format!(
            "a model of {parameters} parameters is larger than the switch or the server takes: \
             raise max_parameters there. A model of more than 4096 segments needs at least 64 \
             parameters in each of them"
        ),
        WelcomeCode::Full => format!(
            "job {job} takes no more workers (or the server no more jobs): stop some, or start \
             another server"
        ),
        WelcomeCode::JobFull => format!(
            "job {job} has as many workers as it may have: stop some, or raise max_workers in the \
             `jobs` of the switch or the server"
        ),
        WelcomeCode::TooManyClusters => format!(
            "job {job} has as many clusters as it may have: join one of them instead of cluster \
             {cluster}, or raise max_clusters in the `jobs` of the switch or the server"
        ),
        WelcomeCode::Loop => format!(
            "the switches on the way to the server of job {job} send to each other in a circle: \
             correct their `upstream`, so that the last of them names the server"
        ),
        WelcomeCode::NotAdmitted => format!(
            "the switch's admission policy refused cluster {cluster} of job {job}: its log names the \
             reason; send less often, join a cluster that is in, or change the policy of the switch \
             (`olaf switch --admission`)"
        ),
        WelcomeCode::Welcome
        | WelcomeCode::ServerSilent
        | WelcomeCode::JoinAgain
        | WelcomeCode::AdmissionPending
        | WelcomeCode::Path => {
            format!("job {job} answered {}", code.name())
        }
    }
}

/// The job is cut to more than the path carries.
pub(super) fn too_narrow(switch: SocketAddr, job: JobId, narrow: &TooNarrow) -> String {
    let TooNarrow { needed_mtu_bytes, mtu_bytes, segment_lanes } = narrow;
    format!(
        "job {job} is cut into segments of {segment_lanes} values, whose packets have \
         {needed_mtu_bytes} bytes; the path from here through {switch} to its server carries \
         packets of {mtu_bytes} bytes at most: raise the MTU of the path, or start the job anew \
         with mtu_bytes = {mtu_bytes} at its first worker (the first worker cuts the job)"
    )
}

/// The switch shook hands, and drops what comes after that: it has no way to say why.
pub(crate) fn no_such_job(switch: SocketAddr, job: u32) -> String {
    format!(
        "{switch} takes this worker's key (key_file), and answers nothing about job {job}: the key is \
         for another job there, or job {job} is not in its list `jobs` (its log: `other_job`); correct \
         the job's number, or give it the job"
    )
}

/// Nobody said anything, or not enough, in time.
pub(super) fn unreachable(
    switch: SocketAddr,
    job: JobId,
    timeout: Duration,
    statistics: &WorkerStatistics,
    refused: bool,
    key_advice: Option<KeyAdvice>,
    key_is_taken: bool,
) -> String {
    let waited = timeout.as_secs_f64();
    if let Some(theirs) = statistics.other_version {
        return format!(
            "{switch} speaks version {theirs} of Olaf's datagrams, and this worker version {}: \
             install the same release of Olaf on both machines",
            olaf_wire::offsets::VERSION
        );
    }
    if let Some(KeyAdvice { is_answer: true, text }) = key_advice {
        return format!("no way into job {job} at {switch}: {text}");
    }
    if !statistics.switch_alive && key_is_taken && !refused {
        return no_such_job(switch, job.0);
    }
    if !statistics.switch_alive {
        let why = if refused {
            "its machine says that nothing listens on that port"
        } else {
            "is it running there, and does UDP get through?"
        };
        return format!(
            "no answer from the switch at {switch} within {waited:.1} s: {why}; start it with \
             `olaf switch`, or correct the address{}",
            key_advice.map_or_else(String::new, |advice| format!("; {}", advice.text))
        );
    }
    if statistics.awaits_admission {
        let cluster = statistics.cluster;
        return format!(
            "the switch at {switch} has not decided within {waited:.1} s whether cluster {cluster} \
             of job {job} may join: allow more time than its `--admission-timeout`, or look at its \
             log"
        );
    }
    if !statistics.server_alive {
        return format!(
            "the switch at {switch} answers, but the server of job {job} behind it has been silent \
             for {waited:.1} s: start it with `olaf server` (or a switch on the way to it with \
             `olaf switch`), or correct the switch's `upstream`"
        );
    }
    let signatures = &statistics.signatures;
    if signatures.forged + signatures.wrong > 0 {
        return format!(
            "the models of job {job} that come through {switch} are not those that its server \
             signed: a switch on the way changes them; replace it, and its key"
        );
    }
    if signatures.unsigned > 0 || signatures.held > 0 {
        return format!(
            "models of job {job} come through {switch} without the server's signature: start the \
             server with the job's key (a switch's key cannot sign), and update switches of an \
             earlier release"
        );
    }
    format!(
        "switch ({switch}) and server answer, but the model of job {job} was not complete within \
         {waited:.1} s: allow more time, or look for loss (kernel_drops in the statistics)"
    )
}
