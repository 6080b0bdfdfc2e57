//! An event in words: its name and its fields, as metrics and people read them.

use super::{Event, Said, SumEvent, TooNarrow, WorkerEvent, WorkerSeen};
use crate::ids::{JobId, PeerId};
use crate::report::{Group, Report, Value};

impl Event {
    /// Shows the event to a visitor: its name under `event`, then its fields.
    pub fn report(&self, to: &mut dyn Report) {
        let mut say = Say(to);
        match self {
            Self::WorkerJoined(seen) => say.of_worker("worker_joined", seen),
            Self::WorkerLeft(seen) => say.of_worker("worker_left", seen),
            Self::WorkerSilent(seen) => say.of_worker("worker_silent", seen),
            Self::WorkerBack(seen) => say.of_worker("worker_back", seen),
            Self::WorkerMoved(seen) => say.of_worker("worker_moved", seen),
            Self::WorkerRefused(seen, code) => {
                say.of_worker("worker_refused", seen);
                say.text("reason", code.name());
            }
            Self::ContributionRejected(seen, rejection) => {
                say.of_worker("contribution_rejected", seen);
                say.text("reason", rejection.name());
            }
            Self::ContributionClipped(seen, clipped) => {
                say.of_worker("contribution_clipped", seen);
                say.text("clipped", clipped.name());
            }
            Self::RoundWithout(seen) => say.of_worker("round_without", seen),
            Self::AdmissionWanted(seen, running) => {
                say.of_worker("admission_wanted", seen);
                say.0.open("running", Group::List);
                for (job, cluster) in running {
                    say.0.open("", Group::Map);
                    say.count("job", job.0);
                    say.count("cluster", cluster.0);
                    say.0.close();
                }
                say.0.close();
            }
            Self::AdmissionUnanswered(seen, ruling) => {
                say.of_worker("admission_unanswered", seen);
                say.text("answer", ruling.name());
            }
            Self::AdmissionNotAsked(seen, ruling) => {
                say.of_worker("admission_not_asked", seen);
                say.text("answer", ruling.name());
            }
            Self::ServerSilent(job, peer) => say.of_neighbour("server_silent", *job, *peer),
            Self::ServerBack(job, peer) => say.of_neighbour("server_back", *job, *peer),
            Self::ServerRestarted(job, peer) => say.of_neighbour("server_restarted", *job, *peer),
            Self::SwitchSilent(job, peer) => say.of_neighbour("switch_silent", *job, *peer),
            Self::SwitchBack(job, peer) => say.of_neighbour("switch_back", *job, *peer),
            Self::SwitchRestarted(job, peer) => say.of_neighbour("switch_restarted", *job, *peer),
            Self::Loop(job, peer) => say.of_neighbour("loop", *job, *peer),
            Self::ModelStarted { job, worker, parameters, version } => {
                say.text("event", "model_started");
                say.count("job", job.0);
                say.count("worker", worker.0);
                say.count("parameters", *parameters);
                say.count("version", *version);
            }
            Self::ModelRestored { job, parameters, version } => {
                say.text("event", "model_restored");
                say.count("job", job.0);
                say.count("parameters", *parameters);
                say.count("version", *version);
            }
            Self::JobForgotten { job, version, idle } => {
                say.text("event", "job_forgotten");
                say.count("job", job.0);
                say.count("version", *version);
                say.0.value("seconds", Value::Number(idle.as_secs_f64()));
            }
            Self::Worker(job, switch, event) => say.by_worker(*job, *switch, event),
            Self::Sum(job, event) => say.of_sum(*job, event),
            Self::Other(told) => {
                say.text("event", &told.name);
                for (name, said) in &told.fields {
                    match said {
                        Said::Number(number) => say.0.value(name, Value::Count(*number)),
                        Said::Text(text) => say.text(name, text),
                    }
                }
            }
        }
    }
}

struct Say<'a>(&'a mut dyn Report);

impl Say<'_> {
    fn text(&mut self, name: &str, text: &str) {
        self.0.value(name, Value::Text(text));
    }

    fn count(&mut self, name: &str, count: u32) {
        self.0.value(name, Value::Count(count.into()));
    }

    fn of_worker(&mut self, name: &str, seen: &WorkerSeen) {
        self.text("event", name);
        self.count("job", seen.job.0);
        self.count("cluster", seen.cluster.0);
        self.count("worker", seen.worker.0);
        self.0.value("address", Value::Peer(seen.peer));
    }

    fn of_neighbour(&mut self, name: &str, job: JobId, peer: PeerId) {
        self.text("event", name);
        self.count("job", job.0);
        self.0.value("address", Value::Peer(peer));
    }

    /// A switch that sums tells of a job.
    fn of_sum(&mut self, job: JobId, event: &SumEvent) {
        self.text("event", event.name());
        self.count("job", job.0);
        match event {
            SumEvent::GenerationBegan { generation, workers } => {
                self.count("generation", *generation);
                self.count("workers", *workers);
            }
            SumEvent::GenerationClosed { generation, operation, reason, culprit } => {
                self.count("generation", *generation);
                self.count("operation", *operation);
                self.text("reason", reason.name());
                if let Some((rank, peer)) = culprit {
                    self.count("rank", *rank);
                    self.0.value("address", Value::Peer(*peer));
                }
            }
            SumEvent::WorkerRefused { peer, code } => {
                self.0.value("address", Value::Peer(*peer));
                self.text("reason", code.name());
            }
            SumEvent::WorkerLeft { rank, peer } | SumEvent::WorkerMisplaced { rank, peer } => {
                self.count("rank", *rank);
                self.0.value("address", Value::Peer(*peer));
            }
            SumEvent::CoresDiffer { here, above } => {
                self.count("here", *here);
                self.count("above", *above);
            }
            SumEvent::NonFinite { rank, operation } => {
                self.count("rank", *rank);
                self.count("operation", *operation);
            }
            SumEvent::Straggler { rank, peer, straggling, events } => {
                self.count("rank", *rank);
                self.0.value("address", Value::Peer(*peer));
                self.text("straggling", straggling.name());
                self.count("blocks", *events);
            }
        }
    }

    /// A worker of `job` tells about itself; it reaches the job through `switch`.
    fn by_worker(&mut self, job: JobId, switch: PeerId, event: &WorkerEvent) {
        self.text("event", event.name());
        match event {
            WorkerEvent::SwitchSilent | WorkerEvent::SwitchBack | WorkerEvent::SwitchRestarted => {
                self.0.value("address", Value::Peer(switch))
            }
            // A worker knows its server only through the switch.
            WorkerEvent::ServerSilent
            | WorkerEvent::ServerBack
            | WorkerEvent::ServerRestarted
            | WorkerEvent::PathBack => {
                self.count("job", job.0);
                self.0.value("through", Value::Peer(switch));
            }
            WorkerEvent::ModelForged { version }
            | WorkerEvent::SignatureForged { version }
            | WorkerEvent::ModelUnsigned { version } => {
                self.count("job", job.0);
                self.count("version", *version);
                self.0.value("through", Value::Peer(switch));
            }
            WorkerEvent::ModelsUnchecked => self.count("job", job.0),
            WorkerEvent::Joined { version } => {
                self.count("job", job.0);
                self.count("version", *version);
            }
            WorkerEvent::TurnedAway(code) => {
                self.count("job", job.0);
                self.text("reason", code.name());
            }
            WorkerEvent::Path { mtu_bytes, segment_lanes } => {
                self.count("job", job.0);
                self.count("mtu_bytes", *mtu_bytes);
                self.count("segment_lanes", *segment_lanes);
            }
            WorkerEvent::InGeneration { generation, rank, workers } => {
                self.count("job", job.0);
                self.count("generation", *generation);
                self.count("rank", *rank);
                self.count("workers", *workers);
            }
            WorkerEvent::GenerationClosed { generation, operation, reason, culprit } => {
                self.count("job", job.0);
                self.count("generation", *generation);
                self.count("operation", *operation);
                self.text("reason", reason.name());
                if let Some(rank) = culprit {
                    self.count("rank", *rank);
                }
            }
            WorkerEvent::JoinRefused(code) => {
                self.count("job", job.0);
                self.text("reason", code.name());
            }
            WorkerEvent::Straggler { rank, straggling, events } => {
                self.count("job", job.0);
                self.count("rank", *rank);
                self.text("straggling", straggling.name());
                self.count("blocks", *events);
            }
            WorkerEvent::PathTooNarrow(narrow) => {
                let TooNarrow { needed_mtu_bytes, mtu_bytes, segment_lanes } = narrow;
                self.count("job", job.0);
                self.0.value("through", Value::Peer(switch));
                self.count("mtu_bytes", *mtu_bytes);
                self.count("needed_mtu_bytes", *needed_mtu_bytes);
                self.count("segment_lanes", *segment_lanes);
                self.text(
                    "reason",
                    &alloc::format!(
                        "packets of {needed_mtu_bytes} bytes do not reach the server and back: \
                         this job needs them, and the path carries {mtu_bytes} bytes; raise the \
                         path's MTU, or start the job anew with mtu_bytes = {mtu_bytes}"
                    ),
                );
            }
        }
    }
}

impl WorkerEvent {
    /// A short stable name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Joined { .. } => "joined",
            Self::TurnedAway(_) => "turned_away",
            Self::Path { .. } => "path",
            Self::PathTooNarrow(_) => "path_too_narrow",
            Self::PathBack => "path_back",
            Self::SwitchSilent => "switch_silent",
            Self::SwitchBack => "switch_back",
            Self::SwitchRestarted => "switch_restarted",
            Self::ServerSilent => "server_silent",
            Self::ServerBack => "server_back",
            Self::ServerRestarted => "server_restarted",
            Self::ModelForged { .. } => "model_forged",
            Self::SignatureForged { .. } => "signature_forged",
            Self::ModelUnsigned { .. } => "model_unsigned",
            Self::ModelsUnchecked => "models_unchecked",
            Self::InGeneration { .. } => "in_generation",
            Self::GenerationClosed { .. } => "generation_closed",
            Self::JoinRefused(_) => "join_refused",
            Self::Straggler { .. } => "straggler",
        }
    }
}

impl SumEvent {
    /// The event's name.
    const fn name(&self) -> &'static str {
        match self {
            Self::GenerationBegan { .. } => "generation_began",
            Self::GenerationClosed { .. } => "generation_closed",
            Self::WorkerRefused { .. } => "sum_worker_refused",
            Self::WorkerLeft { .. } => "sum_worker_left",
            Self::WorkerMisplaced { .. } => "sum_worker_misplaced",
            Self::CoresDiffer { .. } => "cores_differ",
            Self::NonFinite { .. } => "non_finite",
            Self::Straggler { .. } => "sum_straggler",
        }
    }
}
