//! Names of peers, ports, jobs, clusters and workers.

pub use olaf_wire::ids::{ClusterId, JobId, Session, WorkerId};

/// A link of the switch: where datagrams queue and a pacer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

impl PortId {
    /// Towards the servers.
    pub const UPLINK: Self = Self(0);
    /// Towards the workers.
    pub const DOWNLINK: Self = Self(1);
}

/// A party at the other end of a link, as the driver numbers them: an address, to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

impl PeerId {
    /// How a [`Report`](crate::report::Report) tells a peer from a number.
    pub(crate) const NAME: &'static str = "PeerId";
}

impl serde::Serialize for PeerId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(Self::NAME, &self.0)
    }
}

/// Updates that may merge: one segment of one cluster's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Flow {
    /// The job.
    pub job: JobId,
    /// The cluster in the job.
    pub cluster: ClusterId,
    /// The segment of the job's model.
    pub segment: u32,
}
