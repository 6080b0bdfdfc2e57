//! Every byte offset of every message, once.
//!
//! ```text
//! common       0 magic "OLAF"   4 version  5 kind  6 flags  8 job  12 cluster  16 worker  20 session
//! update      24 sequence  28 hop sequence  32 segment  36 segments  40 generated oldest
//!             48 generated newest  56 version oldest  60 version newest  64 contributors  68 lanes
//!             72 weight  80 reward  88 hops  89 zero x3  92 flow sequence  96 lanes ..
//! answer      24 acknowledges  28 segment  32 segments  36 model version  40 parameters
//!             44 lanes  48 epoch  52 delivered version  56 delivered newest  64 server time
//!             72 active clusters  74 slots  76 used  78 switches  79 zero  80 round (us)
//!             84 own age (us)  88 mean age (us)  92 newest of flow  96 delivered mask
//!             104 ended mask  112 lanes ..
//! join        24 have version  28 parameters  32 segment lanes  36 clock error (us)
//!             40 sent at  48 clock offset  56 hops  57 zero x3  60 round trip (us)
//!             64 padded to  68 nonce  72 end, or zeros up to `padded to`
//! welcome     24 code  25 ready  26 rule  27 aggregate  28 version  32 parameters
//!             36 segment lanes
//!             40 epoch  44 first missing  48 echoed sent at  56 received at  64 sent at
//!             72 switch epoch  76 silent (ms)  80 step  81 gate  82 zero x2
//!             84 layout missing  88 factor  96 staleness power  104 missing mask
//!             112 padded to  116 nonce  120 end, or zeros up to `padded to`
//! leave       24 end
//! fetch       24 version  28 first segment  32 mask of 64 segments  40 version that is here  44 end
//! notice      24 taken newest  32 end
//! layout      24 part  28 total  32 length  36 zero x4  40 text ..
//! signature   24 version  28 parameters  32 segment lanes  36 epoch  40 oldest  44 zero x4
//!             48 question  56 hash x32  88 tag x16  104 end
//! ask         24 version  28 zero x4  32 question  40 end
//!
//! flags       of a join: 1 wants notices, 2 asks for the path only; all others are zero
//! ```

/// First bytes of every datagram of ours.
pub const MAGIC: [u8; 4] = *b"OLAF";
/// Version of the format this crate reads and writes.
pub const VERSION: u8 = 3;

/// Fields that every message has.
pub mod common {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const VERSION: usize = 4;
    pub const KIND: usize = 5;
    pub const FLAGS: usize = 6;
    pub const JOB: usize = 8;
    pub const CLUSTER: usize = 12;
    pub const WORKER: usize = 16;
    pub const SESSION: usize = 20;
    pub const LEN: usize = 24;
}

/// A model update on its way to the server.
pub mod update {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const SEQUENCE: usize = 24;
    pub const HOP_SEQUENCE: usize = 28;
    pub const SEGMENT: usize = 32;
    pub const SEGMENTS: usize = 36;
    pub const GENERATED_OLDEST: usize = 40;
    pub const GENERATED_NEWEST: usize = 48;
    pub const VERSION_OLDEST: usize = 56;
    pub const VERSION_NEWEST: usize = 60;
    pub const CONTRIBUTORS: usize = 64;
    pub const LANES: usize = 68;
    pub const WEIGHT: usize = 72;
    pub const REWARD: usize = 80;
    pub const HOPS: usize = 88;
    pub const FLOW_SEQUENCE: usize = 92;
    pub const PAYLOAD: usize = 96;
}

/// An acknowledgement, with or without a segment of the model.
pub mod answer {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const ACKNOWLEDGES: usize = 24;
    pub const SEGMENT: usize = 28;
    pub const SEGMENTS: usize = 32;
    pub const MODEL_VERSION: usize = 36;
    pub const PARAMETERS: usize = 40;
    pub const LANES: usize = 44;
    pub const EPOCH: usize = 48;
    pub const DELIVERED_VERSION: usize = 52;
    pub const DELIVERED_NEWEST: usize = 56;
    pub const SERVER_TIME: usize = 64;
    pub const ACTIVE_CLUSTERS: usize = 72;
    pub const SLOTS: usize = 74;
    pub const USED: usize = 76;
    pub const SWITCHES: usize = 78;
    pub const ROUND_US: usize = 80;
    pub const OWN_AGE_US: usize = 84;
    pub const MEAN_AGE_US: usize = 88;
    pub const FLOW_NEWEST: usize = 92;
    pub const DELIVERED: usize = 96;
    pub const ENDED: usize = 104;
    pub const PAYLOAD: usize = 112;
}

/// A worker's announcement of itself, repeated to stay known.
pub mod join {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const HAVE_VERSION: usize = 24;
    pub const PARAMETERS: usize = 28;
    pub const SEGMENT_LANES: usize = 32;
    pub const CLOCK_ERROR_US: usize = 36;
    pub const SENT_AT: usize = 40;
    pub const CLOCK_OFFSET: usize = 48;
    pub const HOPS: usize = 56;
    pub const ROUND_TRIP_US: usize = 60;
    pub const PADDED_TO: usize = 64;
    pub const NONCE: usize = 68;
    pub const LEN: usize = 72;
}

/// The answer to a join, from the server, or from a switch that must refuse.
pub mod welcome {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const CODE: usize = 24;
    pub const READY: usize = 25;
    pub const RULE: usize = 26;
    pub const AGGREGATE: usize = 27;
    pub const VERSION: usize = 28;
    pub const PARAMETERS: usize = 32;
    pub const SEGMENT_LANES: usize = 36;
    pub const EPOCH: usize = 40;
    pub const FIRST_MISSING: usize = 44;
    pub const ECHOED_SENT_AT: usize = 48;
    pub const RECEIVED_AT: usize = 56;
    pub const SENT_AT: usize = 64;
    pub const SWITCH_EPOCH: usize = 72;
    pub const SILENT_MS: usize = 76;
    pub const STEP: usize = 80;
    pub const GATE: usize = 81;
    pub const LAYOUT_MISSING: usize = 84;
    pub const FACTOR: usize = 88;
    pub const STALENESS_POWER: usize = 96;
    pub const MISSING: usize = 104;
    pub const PADDED_TO: usize = 112;
    pub const NONCE: usize = 116;
    pub const LEN: usize = 120;
}

/// A worker's request for segments of a model version.
pub mod fetch {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const VERSION: usize = 24;
    pub const FIRST: usize = 28;
    pub const MASK: usize = 32;
    pub const HAVE_VERSION: usize = 40;
    pub const LEN: usize = 44;
}

/// What a switch has taken in of a cluster.
pub mod notice {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const TAKEN_NEWEST: usize = 24;
    pub const LEN: usize = 32;
}

/// A part of a worker's description of its model.
pub mod layout {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const PART: usize = 24;
    pub const TOTAL: usize = 28;
    pub const LEN_OF_TEXT: usize = 32;
    pub const TEXT: usize = 40;
}

/// The server's word on one version of its model.
pub mod signature {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const VERSION: usize = 24;
    pub const PARAMETERS: usize = 28;
    pub const SEGMENT_LANES: usize = 32;
    pub const EPOCH: usize = 36;
    pub const OLDEST: usize = 40;
    pub const ZERO: usize = 44;
    pub const QUESTION: usize = 48;
    pub const HASH: usize = 56;
    pub const TAG: usize = 88;
    pub const LEN: usize = 104;
}

/// A worker's question for a signature.
pub mod ask_signature {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const VERSION: usize = 24;
    pub const ZERO: usize = 28;
    pub const QUESTION: usize = 32;
    pub const LEN: usize = 40;
}

/// Flag of a join: its worker wants [notices](crate::Notice).
pub const WANTS_NOTICES: u16 = 1;
/// Flag of a join: it admits no worker, and only asks what the path carries and how the job is cut.
pub const ASKS_PATH: u16 = 2;

/// Bytes of a payload lane.
pub const LANE: usize = 4;
/// The largest UDP payload over IPv4, and so the largest datagram.
pub const MAX_DATAGRAM: usize = 65_507;
/// Lanes that fit a segment of the largest datagram.
pub const MAX_SEGMENT_LANES: usize = (MAX_DATAGRAM - SEGMENT_HEADER) / LANE;
/// The longer of the two headers that lanes travel behind: up in an update, down in an answer.
pub const SEGMENT_HEADER: usize = answer::PAYLOAD;
/// Lanes of a segment by default: header and lanes fill a 9,000-byte frame over IPv6.
pub const DEFAULT_SEGMENT_LANES: usize = 2208;

const _: () = assert!(update::PAYLOAD <= SEGMENT_HEADER);
const _: () = assert!(SEGMENT_HEADER + DEFAULT_SEGMENT_LANES * LANE <= 9000 - 40 - 8);
