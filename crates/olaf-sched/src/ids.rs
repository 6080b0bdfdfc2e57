//! Names of jobs, hosts, switches and links.

pub use olaf_wire::mina::JobId;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// As an index into the topology's or the job list's vector.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A host: an index into [`Topology::hosts`](crate::Topology::hosts), left to right.
    HostId(u32)
}
id! {
    /// A switch: an index into [`Topology::switches`](crate::Topology::switches).
    SwitchId(u32)
}
id! {
    /// A link from a host or switch up to a switch: an index into
    /// [`Topology::links`](crate::Topology::links). It is the port at its upper end.
    LinkId(u32)
}
