//! What a worker's keys may have to do with a switch that does not answer, in words.

use olaf_engine::seal::Standing;

/// What keys have to do with a switch that lets nobody in.
pub(crate) struct KeyAdvice {
    /// The switch itself has said so, or somebody in its place.
    pub(crate) is_answer: bool,
    /// What is wrong, and what to do.
    pub(crate) text: String,
}

impl KeyAdvice {
    /// What to do about it; none where the keys are fine.
    pub(crate) fn of(standing: Standing) -> Option<Self> {
        let (is_answer, text) = match standing {
            Standing::Open => return None,
            Standing::Clear => (
                false,
                "a switch that was started with a key answers only workers with the key of their \
                 job (key_file)"
                    .to_owned(),
            ),
            Standing::Unanswered => (
                false,
                "this worker has a key (key_file), and nobody there has answered it: start the \
                 switch with its key, too (--key-file)"
                    .to_owned(),
            ),
            Standing::KeyRefused => (
                true,
                "the switch says that it has no such key as this worker's (key_file): give both the \
                 key of the same job"
                    .to_owned(),
            ),
            Standing::KeyOver(name) => (
                true,
                format!(
                    "the switch says that this worker's key {} (key_file) was replaced, and that the \
                     time of the old one is over: give the worker the job's present key file",
                    name.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
                ),
            ),
            Standing::OtherVersion(theirs) => (
                true,
                format!(
                    "the switch speaks version {theirs} of the seals of keys, and this worker version \
                     {}: install the same release of Olaf on both machines",
                    olaf_wire::sealed::VERSION
                ),
            ),
        };
        Some(Self { is_answer, text })
    }
}
