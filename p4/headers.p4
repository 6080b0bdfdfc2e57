// Headers of a frame, and the user signal between the P4 blocks and the queue.
//
// The Olaf fields are those of crates/olaf-wire/src/offsets.rs; the tests compare every offset.

#ifndef OLAF_HEADERS
#define OLAF_HEADERS

const bit<16> ETHER_TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;
const bit<8> TIME_TO_LIVE = 64;

const bit<32> OLAF_MAGIC = 0x4f4c4146;  // "OLAF"
const bit<8> OLAF_VERSION = 3;
const bit<8> KIND_UPDATE = 1;
const bit<8> KIND_ACKNOWLEDGEMENT = 2;
const bit<8> KIND_MODEL = 3;

// Bytes of headers, and the largest number of lanes of a segment.
const bit<32> IPV4_BYTES = 20;
const bit<32> UDP_BYTES = 8;
const bit<32> UPDATE_BYTES = 96;
const bit<32> ANSWER_BYTES = 112;
const bit<32> MAX_SEGMENT_LANES = 16348;

// What a frame is for the queue: `class` of the user signal.
const bit<8> BYPASS = 0;
const bit<8> UPDATE = 1;
const bit<8> ANSWER = 2;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> words;  // of this header; 5 without options
    bit<8> traffic_class;
    bit<16> total_length;
    bit<16> identification;
    bit<1> reserved;
    bit<1> do_not_fragment;
    bit<1> more_fragments;
    bit<13> fragment_offset;
    bit<8> time_to_live;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header udp_t {
    bit<16> source;
    bit<16> destination;
    bit<16> length;
    bit<16> checksum;
}

// Bytes 0 to 23 of every message.
header olaf_common_t {
    bit<32> magic;
    bit<8> version;
    bit<8> kind;
    bit<16> flags;
    bit<32> job;
    bit<32> cluster;
    bit<32> worker;
    bit<32> session;
}

// Bytes 24 to 95 of an update.
header olaf_update_t {
    bit<32> sequence;
    bit<32> hop_sequence;
    bit<32> segment;
    bit<32> segments;
    bit<64> generated_oldest;
    bit<64> generated_newest;
    bit<32> version_oldest;
    bit<32> version_newest;
    bit<32> contributors;
    bit<32> lanes;
    bit<64> weight;
    bit<64> reward;
    bit<8> hops;
    bit<24> zero;
    bit<32> flow_sequence;
}

// Bytes 24 to 111 of an answer: an acknowledgement (no lanes), or a segment of the model.
header olaf_answer_t {
    bit<32> acknowledges;
    bit<32> segment;
    bit<32> segments;
    bit<32> model_version;
    bit<32> parameters;
    bit<32> lanes;
    bit<32> epoch;
    bit<32> delivered_version;
    bit<64> delivered_newest;
    bit<64> server_time;
    bit<16> active_clusters;
    bit<16> slots;
    bit<16> used;
    bit<8> switches;
    bit<8> zero;
    bit<32> round_us;
    bit<32> own_age_us;
    bit<32> mean_age_us;
    bit<32> flow_newest;
    bit<64> delivered;
    bit<64> ended;
}

struct frame_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    olaf_common_t olaf;
    olaf_update_t update;
    olaf_answer_t answer;
}

// The user signal that goes with a frame. The first block writes the identity, the queue writes the
// status, and whatever makes the copies of an answer writes `copy`.
struct user_t {
    bit<8> class;
    bit<16> group;  // multicast group of the cluster: Cluster_ID in OLAF §7
    bit<32> flow;  // hash of the five-tuple: Worker_ID in OLAF §7
    bit<32> job;
    bit<32> cluster;
    bit<32> worker;
    bit<32> segment;
    // OLAF §7: "up to 24-bit queue utilization, and 16-bit # active clusters".
    bit<24> used;
    bit<16> active_clusters;
    bit<16> slots;
    bit<32> round_us;  // time in which the queue serves each active cluster once; 0: not known
    bit<16> copy;
}

#endif
