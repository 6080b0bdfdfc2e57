//! Names of the parties that a datagram is from and about.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// One training job: a model, its server and all workers that train it.
    JobId
}
id! {
    /// Workers of one job whose updates may be merged with each other (OLAF §4, `Cluster_ID`).
    ClusterId
}
id! {
    /// One worker, unique in its job (OLAF §4, `Worker_ID`).
    WorkerId
}
id! {
    /// One life of a party, drawn at random when it starts: tells a restart from a duplicate.
    Session
}

impl WorkerId {
    /// Stands for "every worker concerned" in what travels down.
    pub const ALL: Self = Self(u32::MAX);
}
