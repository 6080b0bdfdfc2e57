/* Olaf for C: whole engines, the queue of a switch, its wire format, scenarios.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * Generated from crates/olaf-ffi by cbindgen; do not edit.
 *
 * Every function that can fail returns an olaf_result and writes its results, last, only where that
 * is OLAF_RESULT_OK. Null, misaligned and short buffers are refused. One thread at a time may use a
 * handle. Times are nanoseconds since an origin that the caller keeps for all calls alike. */

#ifndef OLAF_H
#define OLAF_H

#include <stddef.h>
#include <stdint.h>

// Version of this header: a change that breaks callers counts it up. Compare it with
// `olaf_abi_version()` before anything else.
#define OLAF_ABI_VERSION 4

// Bytes of the longest datagram: the least that a buffer for one must have.
#define OLAF_DATAGRAM_MAX 65507

// Bytes of a reason's name, its last zero included.
#define OLAF_REASON_MAX 32

// Most lanes an update may have.
#define OLAF_LANES_MAX 16348

// Of a switch: its uplink leads to the server.
#define OLAF_SERVER UINT32_MAX

// Bytes of an update before its lanes, each of which is four more.
#define OLAF_UPDATE_HEADER_BYTES 96

// What became of a call. Everything but `OLAF_RESULT_OK` leaves its outputs as they were, save a
// length that the call's documentation says is written all the same.
typedef enum olaf_result {
  // Done.
  OLAF_RESULT_OK = 0,
  // There is nothing of what was asked for; no fault of anybody's.
  OLAF_RESULT_NOTHING = 1,
  // An entry departs already: end its departure first.
  OLAF_RESULT_DEPARTING = 2,
  // A pointer that must point to something is null, or not aligned for its type.
  OLAF_RESULT_BAD_POINTER = 3,
  // A buffer is too short; the call says how much it takes.
  OLAF_RESULT_TOO_SHORT = 4,
  // No queue of that kind: olaf or fifo, as a C string.
  OLAF_RESULT_UNKNOWN_KIND = 5,
  // An argument is outside what its documentation allows.
  OLAF_RESULT_BAD_ARGUMENT = 6,
  // The bytes do not begin as a datagram of Olaf does: pass them on untouched.
  OLAF_RESULT_NOT_OURS = 7,
  // The bytes claim to be a datagram of Olaf and are none.
  OLAF_RESULT_MALFORMED = 8,
  // The bytes are a datagram of Olaf, but of another kind.
  OLAF_RESULT_OTHER_KIND = 9,
  // A mistake in Olaf, caught on its way to the caller; please report what stands on stderr.
  // The handle it happened to answers `OLAF_RESULT_BROKEN` from now on.
  OLAF_RESULT_PANICKED = 10,
  // An earlier call on this handle returned `OLAF_RESULT_PANICKED`: only free it.
  OLAF_RESULT_BROKEN = 11,
} olaf_result;

// What an engine did with a datagram.
typedef enum olaf_verdict_kind {
  // The engine took it in.
  OLAF_VERDICT_ABSORBED = 0,
  // The engine refused it for `reason`, and counted it.
  OLAF_VERDICT_DROPPED = 1,
} olaf_verdict_kind;

// What became of an arrival.
typedef enum olaf_fate {
  // It waits in a slot of its own.
  OLAF_FATE_APPENDED = 0,
  // It was added to a waiting entry.
  OLAF_FATE_MERGED = 1,
  // It took a waiting entry's place.
  OLAF_FATE_REPLACED = 2,
  // Its reward is below a waiting entry's by more than the gate allows.
  OLAF_FATE_FILTERED = 3,
  // No slot was free.
  OLAF_FATE_DROPPED = 4,
  // It cannot be summed, or has passed too many switches.
  OLAF_FATE_REJECTED = 5,
  // No slot was free, and it got that of a waiting entry whose departure would have helped
  // less: of a `freshest` queue.
  OLAF_FATE_EVICTED = 6,
} olaf_fate;

// What part an update has in one that it met.
typedef enum olaf_part {
  // It is in the sum.
  OLAF_PART_SUMMED = 0,
  // It was in it until another took its place.
  OLAF_PART_REPLACED = 1,
  // It was held against it and filtered.
  OLAF_PART_FILTERED = 2,
} olaf_part;

// A whole engine, behind a pointer.
typedef struct olaf_engine olaf_engine;

// A queue of updates, behind a pointer.
typedef struct olaf_queue olaf_queue;

// A tree of queues and the workers that send into it, behind a pointer.
typedef struct olaf_scenario olaf_scenario;

// A worker's update that met others on the way.
typedef struct olaf_contributor {
  // Generation time of the newest contribution in it, nanoseconds.
  uint64_t generated_ns;
  // Its worker.
  uint32_t worker;
  // What part it has: a number of `olaf_part`.
  uint32_t part;
} olaf_contributor;

// Fates of contributions. At all times `received = sent_alone + merged + replaced + filtered +
// dropped + rejected + waiting`. What begins with `packets_` counts datagrams, a merge as one.
typedef struct olaf_fates {
  // Contributions that came.
  uint64_t received;
  // Left as they came.
  uint64_t sent_alone;
  // Left in a merge with others.
  uint64_t merged;
  // A newer or better one took their place.
  uint64_t replaced;
  // Below the reward gate.
  uint64_t filtered;
  // Found the queue full, or were discarded by the caller.
  uint64_t dropped;
  // Turned away.
  uint64_t rejected;
  // Still in the queue, the departing ones included.
  uint64_t waiting;
  // Entries that left, whatever they held.
  uint64_t departures;
  // Datagrams that came.
  uint64_t packets_received;
  // Were added to a waiting one.
  uint64_t packets_merged;
  // Took a waiting one's place.
  uint64_t packets_replaced;
  // Below the reward gate.
  uint64_t packets_filtered;
  // Found the queue full, lost their slot, or were discarded by the caller.
  uint64_t packets_dropped;
  // Turned away.
  uint64_t packets_rejected;
} olaf_fates;

// Where a datagram came in.
typedef struct olaf_source {
  // The peer that sent it, by the caller's number.
  uint32_t peer;
  // The port. A worker and a server have port 0 alone; at a switch port 0 is towards servers
  // and port 1 towards workers.
  uint16_t port;
  // Traffic-class byte of its IP header: six bits of class, then two of ECN.
  uint8_t traffic_class;
} olaf_source;

// What became of a datagram.
typedef struct olaf_verdict {
  // What the engine did.
  enum olaf_verdict_kind kind;
  // With `OLAF_VERDICT_DROPPED`: the reason's name in counters and logs; otherwise empty.
  char reason[OLAF_REASON_MAX];
} olaf_verdict;

// A datagram to send.
typedef struct olaf_transmit {
  // Its bytes.
  size_t len;
  // Its receivers: `olaf_engine_receivers` has their numbers.
  size_t receivers;
  // Traffic-class byte to send it with.
  uint8_t traffic_class;
} olaf_transmit;

// How a queue is set up. Begin with `olaf_queue_options_default`.
typedef struct olaf_queue_options {
  // A C string: the name of a queue discipline, such as `olaf` (OLAF §4) or `fifo`.
  const char *kind;
  // Updates it holds, the departing one included: 1 to 1048576.
  size_t slots;
  // The reward gate's threshold, at least 0; not a number: off.
  double gate;
  // A cluster is active if it was heard within this time, in nanoseconds (OLAF §5); above 0.
  uint64_t active_ns;
  // Switches an update may have passed, this one included: 1 to 255.
  uint32_t max_hops;
} olaf_queue_options;

// The header of an update, or of one segment of it: what stands on the wire before the lanes.
typedef struct olaf_update {
  // The job.
  uint32_t job;
  // The cluster in the job: updates of one cluster may merge.
  uint32_t cluster;
  // The worker; of a merge, the contributor that came first.
  uint32_t worker;
  // The sender's life.
  uint32_t session;
  // The worker's count of its updates.
  uint32_t sequence;
  // The last sender's count of what it sent for this job.
  uint32_t hop_sequence;
  // Which segment of the model, from 0; below `segments`.
  uint32_t segment;
  // Segments the model has, at least 1.
  uint32_t segments;
  // Generation time of the oldest contribution, nanoseconds; at most that of the newest.
  uint64_t generated_oldest_ns;
  // Generation time of the newest contribution, nanoseconds.
  uint64_t generated_newest_ns;
  // Oldest model version a contributor computed on; at most the newest.
  uint32_t version_oldest;
  // Newest model version a contributor computed on.
  uint32_t version_newest;
  // Contributions in it, at least 1.
  uint32_t contributors;
  // Switches passed.
  uint32_t hops;
  // Their weights, summed; finite and above 0.
  double weight;
  // Their mean reward by weight. One that is not finite is rejected by a queue.
  double reward;
  // The last sender's count of what it sent in this flow (job, cluster, segment); 0: not counted.
  uint32_t flow_sequence;
  // 0.
  uint32_t reserved;
} olaf_update;

// An update as it comes to a queue.
typedef struct olaf_arrival {
  // Its header; `session` and `hop_sequence` play no part.
  struct olaf_update update;
  // Bytes it takes on the link.
  uint32_t bytes;
  // The updates that met in it before, as `olaf_queue_contributors` told them where it left.
  // Null where there are none: then it is its own worker's.
  const struct olaf_contributor *contributors;
  // How many.
  size_t contributor_count;
  // Its lanes: the sum of the contributions' values times their weights, little-endian 32-bit
  // floats at any alignment. May be null where there are none.
  const uint8_t *lanes;
  // How many lanes, at most `OLAF_LANES_MAX`; 0 where only the queue is studied.
  size_t lane_count;
} olaf_arrival;

// What became of an arrival, with particulars.
typedef struct olaf_outcome {
  // What became of it.
  enum olaf_fate fate;
  // Why it was rejected, a number for `olaf_rejection_name`; 0 where it was not.
  uint32_t rejection;
  // The entry it waits in or met; 0 where there is none.
  uint64_t entry;
  // Contributions whose place it took: replaced, or with `OLAF_FATE_EVICTED` dropped; 0 where
  // there were none.
  uint32_t displaced;
  // With `OLAF_FATE_EVICTED`, the entry that is gone. Else 0.
  uint64_t evicted;
  // Not 0 where the workers of its cluster may be told of it with a notice, as an engine of
  // `olaf_scenario_notices` does: it came straight from its worker and was taken in.
  uint8_t notify;
} olaf_outcome;

// An entry of a queue.
typedef struct olaf_entry {
  // Its name: never used again in its queue.
  uint64_t id;
  // Its header as the next hop is to read it: this switch is counted in `hops`, and
  // `hop_sequence` numbers it. Its `session` is 0.
  struct olaf_update update;
  // Bytes it takes on the link: the largest contribution's.
  uint32_t bytes;
  // Not 0 where it is one worker's unmerged update, which a newer one of that worker replaces.
  uint8_t replaceable;
  // Sum of the contributions' lanes, in this machine's floats; valid until the next call that
  // changes the queue. Null where there are none.
  const float *lanes;
  // How many lanes.
  size_t lane_count;
  // Updates that met in it: how many `olaf_queue_contributors` has to say.
  size_t contributors;
} olaf_entry;

// State of a queue as answers carry it back (OLAF §5).
typedef struct olaf_queue_status {
  // Clusters heard lately.
  uint16_t active_clusters;
  // Updates the queue can hold.
  uint16_t slots;
  // Updates it holds.
  uint16_t used;
  // Switches that have looked at this status; 0: none wrote one.
  uint16_t switches;
  // Time in which a queue of the path serves each active cluster once, microseconds: the longest
  // of the path; 0: not known.
  uint32_t round_us;
} olaf_queue_status;

// A scenario as a whole.
typedef struct olaf_scenario_shape {
  // Random seed.
  uint64_t seed;
  // Duration of the run: workers send and ages are observed, in nanoseconds.
  uint64_t duration_ns;
  // Not 0: an update on the wire keeps its slot.
  uint8_t head_keeps_slot;
  // Not 0: switches tell a cluster's workers what they have taken in of it.
  uint8_t notices;
  // Number of switches.
  uint32_t switches;
  // Number of groups of clusters.
  uint32_t groups;
  // Number of workers in all groups.
  uint32_t workers;
  // A cluster is active if it was heard within this time, in nanoseconds.
  uint64_t active_ns;
} olaf_scenario_shape;

// A switch of a scenario. Texts stay valid until the scenario is freed.
typedef struct olaf_switch_spec {
  // Its name.
  const char *name;
  // Its queue's kind.
  const char *queue;
  // Updates it holds.
  size_t slots;
  // The reward gate's threshold; not a number: off.
  double gate;
  // Rate of its uplink, bits per second.
  uint64_t rate_bps;
  // The switch its uplink leads to, or `OLAF_SERVER`.
  uint32_t upstream;
  // From the uplink's last bit out to its last bit in, nanoseconds.
  uint64_t delay_ns;
} olaf_switch_spec;

// Clusters of a scenario that are alike. Texts stay valid until the scenario is freed.
typedef struct olaf_group_spec {
  // Its name.
  const char *name;
  // The switch its workers send to.
  uint32_t switch_index;
  // Clusters in it.
  uint32_t clusters;
  // Workers in each cluster.
  uint32_t workers;
  // An update's bytes on the link.
  uint32_t packet_bytes;
} olaf_group_spec;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of the library that is linked.
uint32_t olaf_abi_version(void);

// Makes a worker of a scenario. Its updates become ready at the scenario's times and are sent
// under the scenario's control, each with `lanes` lanes whose values are 1 for each contribution.
// Its peer 0 is the server. Free the engine with `olaf_engine_free`; it does not need the
// scenario.
//
// `OLAF_RESULT_BAD_ARGUMENT`: the scenario has fewer workers, or `lanes` is above the lanes of
// the longest update.
//
// # Safety
// `scenario` is null or from `olaf_scenario_new`; `engine` is null or points to room for a pointer.
enum olaf_result olaf_scenario_worker(const struct olaf_scenario *scenario,
                                      uint32_t worker,
                                      size_t lanes,
                                      struct olaf_engine **engine);

// Makes the server of a scenario: it takes the ages and sends the scenario's answers. Each peer
// has its worker's number, counted through all groups. Free the engine with `olaf_engine_free`; it
// does not need the scenario.
//
// # Safety
// `scenario` is null or from `olaf_scenario_new`; `engine` is null or points to room for a pointer.
enum olaf_result olaf_scenario_server(const struct olaf_scenario *scenario,
                                      struct olaf_engine **engine);

// Makes the notices of a scenario's switch, for a control that asks for them. Hand the engine each
// update whose `olaf_outcome` says `notify`: it tells the update's cluster after the scenario's
// time. Each peer has its worker's number, counted through all groups. Free the engine with
// `olaf_engine_free`; it does not need the scenario.
//
// # Safety
// `scenario` is null or from `olaf_scenario_new`; `engine` is null or points to room for a pointer.
enum olaf_result olaf_scenario_notices(const struct olaf_scenario *scenario,
                                       struct olaf_engine **engine);

// Names the workers whose updates met in the datagram that comes next; a scenario's server answers
// them. Workers are counted through all groups. Without this call the server answers the update's
// own worker. Other engines ignore the call.
//
// # Safety
// `engine` is null or was made here; `contributors` is null or has `count` of them.
enum olaf_result olaf_scenario_met(struct olaf_engine *engine,
                                   const struct olaf_contributor *contributors,
                                   size_t count);

// Writes what a scenario came to in the caller's simulator: JSON, a C string, as
// `olaf_scenario_run` writes it. `engines` are its server and all its workers, `switches` the
// fates at all its switches in the scenario's order. Contributions without another fate count as
// on the way. `len` becomes the text's bytes, the last one, zero, included, also where
// `OLAF_RESULT_TOO_SHORT` says that `capacity` is below that.
//
// `OLAF_RESULT_BAD_ARGUMENT`: an engine or a switch is missing or too many, or more contributions
// ended than the workers made.
//
// # Safety
// `scenario` is null or from `olaf_scenario_new`; `engines` is null or has `engine_count` engines
// that were made here and not freed; `switches` is null or has `switch_count` of them; `json` is
// null or has room for `capacity` bytes; `len` is null or points to room for a number.
enum olaf_result olaf_scenario_outcome(const struct olaf_scenario *scenario,
                                       const struct olaf_engine *const *engines,
                                       size_t engine_count,
                                       const struct olaf_fates *switches,
                                       size_t switch_count,
                                       char *json,
                                       size_t capacity,
                                       size_t *len);

// Makes an engine. `role` is `switch`, `server` or `worker`; `config` is a JSON object with the
// keys of that role's configuration, or null for the defaults. A switch has the key `server`
// besides (number of the peer that is its server), a worker has `job`, `cluster`, `worker`,
// `switch` (number of the peer), `segment_lanes` and `seed`. `life` names this life of the engine:
// draw it at random, above 0. Free the engine with `olaf_engine_free`.
//
// `OLAF_RESULT_BAD_ARGUMENT`: there is no such role, or the configuration cannot be; `why` then
// says which key, and what to do. `why` may be null; it takes at most `why_capacity` bytes.
//
// # Safety
// `role` and `config` are null or C strings; `why` is null or has room for `why_capacity` bytes;
// `engine` is null or points to room for a pointer.
enum olaf_result olaf_engine_new(const char *role,
                                 const char *config,
                                 uint32_t life,
                                 char *why,
                                 size_t why_capacity,
                                 struct olaf_engine **engine);

// Frees an engine; null is nothing to free.
//
// # Safety
// `engine` is null, or came from `olaf_engine_new` and was not freed before.
void olaf_engine_free(struct olaf_engine *engine);

// The number of the engine's ports; their numbers begin at 0.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `ports` is null or points to room for one.
enum olaf_result olaf_engine_ports(const struct olaf_engine *engine, uint16_t *ports);

// A datagram arrived at `now_ns`. Time never runs backwards from call to call.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `from` is null or points to one; `bytes` is null or
// has `len` bytes; `verdict` is null or points to room for one.
enum olaf_result olaf_engine_handle_packet(struct olaf_engine *engine,
                                           uint64_t now_ns,
                                           const struct olaf_source *from,
                                           const uint8_t *bytes,
                                           size_t len,
                                           struct olaf_verdict *verdict);

// Takes the next datagram that has left a port's link by `now_ns`, written into `buf`, which must
// have room for `OLAF_DATAGRAM_MAX` bytes.
//
// `OLAF_RESULT_NOTHING`: none is due. `OLAF_RESULT_TOO_SHORT`: the buffer is too short, and
// nothing was taken.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `buf` is null or has room for `capacity` bytes;
// `transmit` is null or points to room for one.
enum olaf_result olaf_engine_poll_transmit(struct olaf_engine *engine,
                                           uint64_t now_ns,
                                           uint16_t port,
                                           uint8_t *buf,
                                           size_t capacity,
                                           struct olaf_transmit *transmit);

// The receivers of the datagram that `olaf_engine_poll_transmit` took last, by the caller's
// numbers. `OLAF_RESULT_TOO_SHORT`: there are more than `capacity`.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `peers` is null or has room for `capacity` numbers.
enum olaf_result olaf_engine_receivers(const struct olaf_engine *engine,
                                       uint32_t *peers,
                                       size_t capacity);

// When to call `olaf_engine_handle_timeout` next. `OLAF_RESULT_NOTHING`: no time is set.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `at_ns` is null or points to room for one.
enum olaf_result olaf_engine_poll_timeout(const struct olaf_engine *engine, uint64_t *at_ns);

// The time of a timeout has come.
//
// # Safety
// `engine` is null or from `olaf_engine_new`.
enum olaf_result olaf_engine_handle_timeout(struct olaf_engine *engine, uint64_t now_ns);

// Takes the next event, a JSON object that has the event's name under `event`. Peers are the
// caller's numbers. `len` receives the bytes of the text, its last zero not included.
//
// `OLAF_RESULT_NOTHING`: there is none. `OLAF_RESULT_TOO_SHORT`: the text needs `*len + 1` bytes,
// and the event stays.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `text` is null or has room for `capacity` bytes;
// `len` is null or points to room for one.
enum olaf_result olaf_engine_poll_event(struct olaf_engine *engine,
                                        char *text,
                                        size_t capacity,
                                        size_t *len);

// Everything that the engine counted so far, a JSON object with the names of
// `docs/reference/statistics.md`. Peers are the caller's numbers. `len` receives the bytes of the
// text, its last zero not included.
//
// `OLAF_RESULT_TOO_SHORT`: the text needs `*len + 1` bytes.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `text` is null or has room for `capacity` bytes;
// `len` is null or points to room for one.
enum olaf_result olaf_engine_report(const struct olaf_engine *engine,
                                    uint64_t now_ns,
                                    char *text,
                                    size_t capacity,
                                    size_t *len);

// A worker joins its job, offering `parameters` as the first model.
//
// `OLAF_RESULT_BAD_ARGUMENT`: the engine is no worker, or the model cannot be.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `parameters` is null or has `count` values.
enum olaf_result olaf_engine_join(struct olaf_engine *engine,
                                  uint64_t now_ns,
                                  const float *parameters,
                                  size_t count);

// A worker sends one update of its model's size; `sequence` receives its number.
//
// `OLAF_RESULT_BAD_ARGUMENT`: the engine is no worker, has not joined, or the update cannot be.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `update` is null or has `count` values; `sequence`
// is null or points to room for one.
enum olaf_result olaf_engine_push(struct olaf_engine *engine,
                                  uint64_t now_ns,
                                  const float *update,
                                  size_t count,
                                  double reward,
                                  double weight,
                                  uint32_t *sequence);

// Copies the newest whole model that came to a worker into `parameters`, where its version is
// above `newer_than`; `version` receives that version.
//
// `OLAF_RESULT_NOTHING`: there is none. `OLAF_RESULT_BAD_ARGUMENT`: the engine is no worker, or
// the model has another number of parameters than `count`.
//
// # Safety
// `engine` is null or from `olaf_engine_new`; `parameters` is null or has room for `count` values;
// `version` is null or points to room for one.
enum olaf_result olaf_engine_pull(struct olaf_engine *engine,
                                  uint32_t newer_than,
                                  float *parameters,
                                  size_t count,
                                  uint32_t *version);

// A worker leaves. `OLAF_RESULT_BAD_ARGUMENT`: the engine is no worker.
//
// # Safety
// `engine` is null or from `olaf_engine_new`.
enum olaf_result olaf_engine_leave(struct olaf_engine *engine);

// Fills in what a switch uses by default: `olaf`, 8 slots, no gate, clusters active for a second,
// 16 switches.
//
// # Safety
// `options` is null or points to room for one.
enum olaf_result olaf_queue_options_default(struct olaf_queue_options *options);

// Makes an empty queue. Free it with `olaf_queue_free`.
//
// `OLAF_RESULT_UNKNOWN_KIND`, `OLAF_RESULT_BAD_ARGUMENT`: the options cannot be.
//
// # Safety
// `options` is null or points to options whose `kind` is null or a C string; `queue` is null or
// points to room for a pointer.
enum olaf_result olaf_queue_new(const struct olaf_queue_options *options,
                                struct olaf_queue **queue);

// Frees a queue; null is nothing to free.
//
// # Safety
// `queue` is null, or came from `olaf_queue_new` and was not freed before.
void olaf_queue_free(struct olaf_queue *queue);

// An update arrives at `now_ns`: what becomes of it is written to `outcome`.
//
// `OLAF_RESULT_BAD_ARGUMENT`: the header contradicts itself, the lanes are too many, or a part is
// none of `olaf_part`. What a queue refuses for its contents (a reward that is not finite, a loop) is no error but a fate.
//
// # Safety
// `queue` is null or from `olaf_queue_new`; `arrival` is null or points to one whose `lanes` are
// null or `4 * lane_count` bytes and whose `contributors` are null or `contributor_count` of them;
// `outcome` is null or points to room for one.
enum olaf_result olaf_queue_arrive(struct olaf_queue *queue,
                                   uint64_t now_ns,
                                   const struct olaf_arrival *arrival,
                                   struct olaf_outcome *outcome);

// Locks the entry whose turn it is and describes it: from here on it takes nothing in, and it
// keeps its slot until `olaf_queue_end`.
//
// `OLAF_RESULT_NOTHING`: none waits. `OLAF_RESULT_DEPARTING`: one departs already.
//
// # Safety
// `queue` is null or from `olaf_queue_new`; `entry` is null or points to room for one.
enum olaf_result olaf_queue_begin(struct olaf_queue *queue,
                                  uint64_t now_ns,
                                  struct olaf_entry *entry);

// Describes the entry that departs. `OLAF_RESULT_NOTHING`: none does.
//
// # Safety
// `queue` is null or from `olaf_queue_new`; `entry` is null or points to room for one.
enum olaf_result olaf_queue_departing(const struct olaf_queue *queue, struct olaf_entry *entry);

// Describes the entry whose turn comes next, as it stands now. `OLAF_RESULT_NOTHING`: none waits.
//
// # Safety
// `queue` is null or from `olaf_queue_new`; `entry` is null or points to room for one.
enum olaf_result olaf_queue_peek(const struct olaf_queue *queue, struct olaf_entry *entry);

// Writes the updates that met in the departing entry, in the order of their coming: those in the
// sum, those whose place another took and those filtered against it. Whoever forwards its answer
// needs them. `count` becomes how many there are, also where `OLAF_RESULT_TOO_SHORT` says that
// `capacity` is below that.
//
// `OLAF_RESULT_NOTHING`: no entry departs.
//
// # Safety
// `queue` is null or from `olaf_queue_new`; `contributors` is null or has room for `capacity` of
// them; `count` is null or points to room for a number.
enum olaf_result olaf_queue_contributors(const struct olaf_queue *queue,
                                         struct olaf_contributor *contributors,
                                         size_t capacity,
                                         size_t *count);

// The departing entry has left: its slot is free. `OLAF_RESULT_NOTHING`: none departs.
//
// # Safety
// `queue` is null or from `olaf_queue_new`.
enum olaf_result olaf_queue_end(struct olaf_queue *queue);

// The departing entry is thrown away instead of sent: its contributions count as dropped.
// `OLAF_RESULT_NOTHING`: none departs.
//
// # Safety
// `queue` is null or from `olaf_queue_new`.
enum olaf_result olaf_queue_discard(struct olaf_queue *queue);

// The queue's state at `now_ns`, as answers that pass back carry it. `service_ns` is how long the
// link takes for an update, of which the round follows; 0: not known.
//
// # Safety
// `queue` is null or from `olaf_queue_new`; `status` is null or points to room for one.
enum olaf_result olaf_queue_get_status(const struct olaf_queue *queue,
                                       uint64_t now_ns,
                                       uint64_t service_ns,
                                       struct olaf_queue_status *status);

// What became of every contribution and datagram so far.
//
// # Safety
// `queue` is null or from `olaf_queue_new`; `fates` is null or points to room for them.
enum olaf_result olaf_queue_get_fates(const struct olaf_queue *queue, struct olaf_fates *fates);

// The name of a rejection, a constant string; null where there is none of that number.
const char *olaf_rejection_name(uint32_t rejection);

// A code in words, a constant string; of a number that is no code, words that say so.
const char *olaf_result_text(int32_t code);

// Reads a scenario: JSON, a C string; `docs/reference/scenarios.md` has the keys.
//
// `OLAF_RESULT_BAD_ARGUMENT`: it cannot be; why is written to `why`, a C string of at most
// `capacity` bytes, cut short where it is longer.
//
// # Safety
// `json` is null or a C string; `why` is null or has room for `capacity` bytes; `scenario` is null
// or points to room for a pointer.
enum olaf_result olaf_scenario_new(const char *json,
                                   char *why,
                                   size_t capacity,
                                   struct olaf_scenario **scenario);

// Frees a scenario; null is nothing to free.
//
// # Safety
// `scenario` is null, or came from `olaf_scenario_new` and was not freed before.
void olaf_scenario_free(struct olaf_scenario *scenario);

// Describes a scenario as a whole.
//
// # Safety
// `scenario` is null or from `olaf_scenario_new`; `shape` is null or points to room for one.
enum olaf_result olaf_scenario_get_shape(const struct olaf_scenario *scenario,
                                         struct olaf_scenario_shape *shape);

// Describes a switch, numbered in the scenario's order. `OLAF_RESULT_NOTHING`: there are fewer.
//
// # Safety
// `scenario` is null or from `olaf_scenario_new`; `spec` is null or points to room for one.
enum olaf_result olaf_scenario_get_switch(const struct olaf_scenario *scenario,
                                          uint32_t number,
                                          struct olaf_switch_spec *spec);

// Describes a group, numbered in the scenario's order. `OLAF_RESULT_NOTHING`: there are fewer.
//
// # Safety
// `scenario` is null or from `olaf_scenario_new`; `spec` is null or points to room for one.
enum olaf_result olaf_scenario_get_group(const struct olaf_scenario *scenario,
                                         uint32_t number,
                                         struct olaf_group_spec *spec);

// Runs a scenario in `olaf-sim` and writes what it came to: JSON, a C string. `len` becomes its
// bytes, the last one, zero, included, also where `OLAF_RESULT_TOO_SHORT` says that `capacity` is
// below that.
//
// # Safety
// `scenario` is null or from `olaf_scenario_new`; `json` is null or has room for `capacity` bytes;
// `len` is null or points to room for a number.
enum olaf_result olaf_scenario_run(const struct olaf_scenario *scenario,
                                   char *json,
                                   size_t capacity,
                                   size_t *len);

// Reads the header of one whole datagram. Its lanes begin `OLAF_UPDATE_HEADER_BYTES` behind
// `bytes`; how many there are is written to `lane_count`.
//
// `OLAF_RESULT_NOT_OURS`, `OLAF_RESULT_MALFORMED`, `OLAF_RESULT_OTHER_KIND`: it is no update.
//
// # Safety
// `bytes` is null or `len` bytes; `update` and `lane_count` are null or point to room for one.
enum olaf_result olaf_update_parse(const uint8_t *bytes,
                                   size_t len,
                                   struct olaf_update *update,
                                   size_t *lane_count);

// Writes an update and its lanes as one datagram of `OLAF_UPDATE_HEADER_BYTES + 4 * lane_count`
// bytes, which is written to `len`, also where `OLAF_RESULT_TOO_SHORT` says that `capacity` is
// below that.
//
// `OLAF_RESULT_BAD_ARGUMENT`: the header contradicts itself, or lanes are none or more than
// `OLAF_LANES_MAX`.
//
// # Safety
// `update` is null or points to one; `lanes` is null or `lane_count` floats; `bytes` is null or
// has room for `capacity` bytes; `len` is null or points to room for a number.
enum olaf_result olaf_update_emit(const struct olaf_update *update,
                                  const float *lanes,
                                  size_t lane_count,
                                  uint8_t *bytes,
                                  size_t capacity,
                                  size_t *len);

// Writes the header alone, `OLAF_UPDATE_HEADER_BYTES` bytes, of an update whose lanes the caller
// puts behind it.
//
// `OLAF_RESULT_BAD_ARGUMENT`: the header contradicts itself, or lanes are none or more than
// `OLAF_LANES_MAX`.
//
// # Safety
// `update` is null or points to one; `bytes` is null or has room for `capacity` bytes.
enum olaf_result olaf_update_emit_header(const struct olaf_update *update,
                                         size_t lane_count,
                                         uint8_t *bytes,
                                         size_t capacity);

// Reads `lane_count` lanes as they stand on the wire, at any alignment, into this machine's floats.
//
// # Safety
// `bytes` is null or `4 * lane_count` bytes; `lanes` is null or has room for as many floats.
enum olaf_result olaf_lanes_read(const uint8_t *bytes, size_t lane_count, float *lanes);

// A switch writes its queue's state into an answer that passes (OLAF §5, reverse-path signaling):
// of several switches on the path the most crowded one is told, the one with the most active
// clusters for each slot, and the longest round. The answer may have lanes of a model, and stays
// as long as it is.
//
// `OLAF_RESULT_NOT_OURS`, `OLAF_RESULT_MALFORMED`, `OLAF_RESULT_OTHER_KIND`: the datagram is no
// answer, and stays as it is.
//
// # Safety
// `bytes` is null or one whole datagram of `len` bytes; `own` is null or points to one.
enum olaf_result olaf_answer_stamp(uint8_t *bytes, size_t len, const struct olaf_queue_status *own);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* OLAF_H */
