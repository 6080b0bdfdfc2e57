/* The header and the library, as a C program uses them. Prints what it checked; exit status 1 and
 * a line on stderr name the first thing that was not so. */

#include "olaf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                        \
  do {                                                                     \
    if (!(what)) {                                                         \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);   \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

/* A number that no call writes: outputs of refused calls keep it. */
#define UNTOUCHED 0xA5

static olaf_update update_of(uint32_t cluster, uint32_t worker, uint64_t generated_ns) {
  olaf_update update;
  memset(&update, 0, sizeof update);
  update.job = 1;
  update.cluster = cluster;
  update.worker = worker;
  update.segments = 1;
  update.generated_oldest_ns = generated_ns;
  update.generated_newest_ns = generated_ns;
  update.contributors = 1;
  update.weight = 1.0;
  return update;
}

static olaf_queue *queue_of(const char *kind, size_t slots) {
  olaf_queue_options options;
  olaf_queue *queue = NULL;
  CHECK(olaf_queue_options_default(&options) == OLAF_RESULT_OK);
  CHECK(isnan(options.gate) && options.slots == 8 && strcmp(options.kind, "olaf") == 0);
  options.kind = kind;
  options.slots = slots;
  CHECK(olaf_queue_new(&options, &queue) == OLAF_RESULT_OK);
  CHECK(queue != NULL);
  return queue;
}

static olaf_outcome arrive(olaf_queue *queue, uint64_t now_ns, uint32_t cluster, uint32_t worker,
                           float value) {
  /* Lanes need no alignment: these begin at an odd address. */
  unsigned char lanes[1 + 2 * sizeof(float)];
  const float values[2] = {value, 2 * value};
  olaf_arrival arrival;
  olaf_outcome outcome;
  memcpy(lanes + 1, values, sizeof values);
  memset(&arrival, 0, sizeof arrival);
  arrival.update = update_of(cluster, worker, now_ns);
  arrival.bytes = 1030;
  arrival.lanes = lanes + 1;
  arrival.lane_count = 2;
  CHECK(olaf_queue_arrive(queue, now_ns, &arrival, &outcome) == OLAF_RESULT_OK);
  return outcome;
}

static void updates_of_a_cluster_merge_and_the_contributors_are_known(void) {
  olaf_queue *queue = queue_of("olaf", 2);
  olaf_entry entry;
  olaf_contributor met[4];
  size_t count = 0;
  CHECK(arrive(queue, 1, 7, 1, 1.0f).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 2, 7, 1, 5.0f).fate == OLAF_FATE_REPLACED);
  CHECK(arrive(queue, 3, 7, 2, 3.0f).fate == OLAF_FATE_MERGED);
  CHECK(arrive(queue, 4, 8, 3, 0.0f).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 5, 9, 4, 0.0f).fate == OLAF_FATE_DROPPED);

  CHECK(olaf_queue_peek(queue, &entry) == OLAF_RESULT_OK && entry.update.cluster == 7);
  CHECK(olaf_queue_departing(queue, &entry) == OLAF_RESULT_NOTHING);
  CHECK(olaf_queue_begin(queue, 6, &entry) == OLAF_RESULT_OK);
  CHECK(entry.update.contributors == 2 && entry.update.weight == 2.0 && entry.update.hops == 1);
  CHECK(entry.update.generated_oldest_ns == 2 && entry.update.generated_newest_ns == 3);
  CHECK(entry.lane_count == 2 && entry.lanes[0] == 8.0f && entry.lanes[1] == 16.0f);
  CHECK(entry.contributors == 3);
  CHECK(olaf_queue_begin(queue, 6, &entry) == OLAF_RESULT_DEPARTING);

  /* A short buffer is told how much it takes and stays as it was. */
  memset(met, UNTOUCHED, sizeof met);
  CHECK(olaf_queue_contributors(queue, met, 2, &count) == OLAF_RESULT_TOO_SHORT && count == 3);
  CHECK(((unsigned char *)met)[0] == UNTOUCHED);
  CHECK(olaf_queue_contributors(queue, met, 4, &count) == OLAF_RESULT_OK && count == 3);
  CHECK(met[0].worker == 1 && met[0].generated_ns == 1 && met[0].part == OLAF_PART_REPLACED);
  CHECK(met[1].worker == 1 && met[1].generated_ns == 2 && met[1].part == OLAF_PART_SUMMED);
  CHECK(met[2].worker == 2 && met[2].generated_ns == 3 && met[2].part == OLAF_PART_SUMMED);

  /* The locked head keeps its slot and takes nothing in. */
  CHECK(arrive(queue, 7, 7, 5, 1.0f).fate == OLAF_FATE_DROPPED);
  CHECK(olaf_queue_end(queue) == OLAF_RESULT_OK);
  CHECK(olaf_queue_end(queue) == OLAF_RESULT_NOTHING);
  CHECK(arrive(queue, 8, 7, 5, 1.0f).fate == OLAF_FATE_APPENDED);
  olaf_queue_free(queue);
}

static void what_met_further_down_is_passed_on(void) {
  olaf_queue *queue = queue_of("olaf", 2);
  olaf_contributor before[2] = {{1, 5, OLAF_PART_FILTERED}, {2, 6, OLAF_PART_SUMMED}};
  olaf_contributor met[4];
  olaf_arrival arrival;
  olaf_outcome outcome;
  olaf_entry entry;
  size_t count = 0;
  memset(&arrival, 0, sizeof arrival);
  arrival.update = update_of(7, 6, 2);
  arrival.contributors = before;
  CHECK(olaf_queue_arrive(queue, 3, &arrival, &outcome) == OLAF_RESULT_OK);
  arrival.contributor_count = 2;
  arrival.update.sequence = 1;
  CHECK(olaf_queue_arrive(queue, 3, &arrival, &outcome) == OLAF_RESULT_OK);
  CHECK(outcome.fate == OLAF_FATE_REPLACED);
  CHECK(olaf_queue_begin(queue, 4, &entry) == OLAF_RESULT_OK);
  CHECK(olaf_queue_contributors(queue, met, 4, &count) == OLAF_RESULT_OK && count == 3);
  CHECK(met[0].worker == 6 && met[0].part == OLAF_PART_REPLACED);
  CHECK(met[1].worker == 5 && met[1].part == OLAF_PART_FILTERED);
  CHECK(met[2].worker == 6 && met[2].part == OLAF_PART_SUMMED);
  before[0].part = 3;
  CHECK(olaf_queue_arrive(queue, 5, &arrival, &outcome) == OLAF_RESULT_BAD_ARGUMENT);
  arrival.contributors = NULL;
  CHECK(olaf_queue_arrive(queue, 5, &arrival, &outcome) == OLAF_RESULT_BAD_POINTER);
  olaf_queue_free(queue);
}

static void fates_add_up(void) {
  olaf_queue *queue = queue_of("fifo", 2);
  olaf_queue_status status;
  olaf_entry entry;
  olaf_fates f;
  CHECK(arrive(queue, 1, 7, 1, 1.0f).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 2, 7, 1, 1.0f).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 3, 8, 1, 1.0f).fate == OLAF_FATE_DROPPED);
  {
    olaf_outcome refused = arrive(queue, 4, 9, 1, INFINITY);
    CHECK(refused.fate == OLAF_FATE_REJECTED);
    CHECK(strcmp(olaf_rejection_name(refused.rejection), "non_finite") == 0);
  }
  CHECK(olaf_queue_get_status(queue, 5, 2000000, &status) == OLAF_RESULT_OK);
  CHECK(status.active_clusters == 3 && status.slots == 2 && status.used == 2);
  CHECK(status.round_us == 6000);
  CHECK(olaf_queue_get_status(queue, 2000000000u, 0, &status) == OLAF_RESULT_OK);
  CHECK(status.active_clusters == 0);
  CHECK(olaf_queue_begin(queue, 5, &entry) == OLAF_RESULT_OK);
  CHECK(olaf_queue_end(queue) == OLAF_RESULT_OK);
  CHECK(olaf_queue_begin(queue, 5, &entry) == OLAF_RESULT_OK);
  CHECK(olaf_queue_discard(queue) == OLAF_RESULT_OK);
  CHECK(olaf_queue_discard(queue) == OLAF_RESULT_NOTHING);
  CHECK(olaf_queue_get_fates(queue, &f) == OLAF_RESULT_OK);
  CHECK(f.received == 4 && f.sent_alone == 1 && f.dropped == 2 && f.rejected == 1);
  CHECK(f.packets_received == 4 && f.packets_dropped == 2 && f.packets_rejected == 1);
  CHECK(f.received ==
        f.sent_alone + f.merged + f.replaced + f.filtered + f.dropped + f.rejected + f.waiting);
  olaf_queue_free(queue);
}

static void what_is_evicted_is_told(void) {
  olaf_queue *queue = queue_of("freshest", 1);
  olaf_entry entry;
  olaf_contributor met[2];
  olaf_outcome outcome;
  olaf_fates f;
  size_t count;
  CHECK(arrive(queue, 1, 7, 1, 1.0f).fate == OLAF_FATE_APPENDED);
  CHECK(olaf_queue_begin(queue, 1, &entry) == OLAF_RESULT_OK);
  CHECK(olaf_queue_end(queue) == OLAF_RESULT_OK);
  /* The server knows of cluster 7 and nothing of cluster 8, which is worth more. */
  CHECK(arrive(queue, 2, 7, 1, 1.0f).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 3, 7, 2, 1.0f).fate == OLAF_FATE_MERGED);
  outcome = arrive(queue, 4, 8, 3, 1.0f);
  CHECK(outcome.fate == OLAF_FATE_EVICTED && outcome.displaced == 2);
  CHECK(outcome.evicted == 1 && outcome.entry == 2);
  CHECK(arrive(queue, 5, 8, 3, 1.0f).fate == OLAF_FATE_REPLACED);
  CHECK(olaf_queue_get_fates(queue, &f) == OLAF_RESULT_OK);
  CHECK(f.received == 5 && f.sent_alone == 1 && f.dropped == 2 && f.replaced == 1);
  CHECK(f.waiting == 1);
  /* Those who met in the evicted entry have no part in the one that took its slot. */
  CHECK(olaf_queue_begin(queue, 6, &entry) == OLAF_RESULT_OK && entry.contributors == 2);
  CHECK(olaf_queue_contributors(queue, met, 2, &count) == OLAF_RESULT_OK && count == 2);
  CHECK(met[0].worker == 3 && met[0].part == OLAF_PART_REPLACED && met[1].worker == 3);
  olaf_queue_free(queue);
}

static void what_cannot_be_is_refused(void) {
  olaf_queue *queue = queue_of("olaf", 2);
  olaf_queue_options options;
  olaf_arrival arrival;
  olaf_outcome outcome;
  olaf_entry entry;
  size_t count;
  CHECK(olaf_queue_options_default(NULL) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_queue_options_default(&options) == OLAF_RESULT_OK);
  CHECK(olaf_queue_new(&options, NULL) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_queue_new(NULL, &queue) == OLAF_RESULT_BAD_POINTER);
  options.kind = "lifo";
  CHECK(olaf_queue_new(&options, &queue) == OLAF_RESULT_UNKNOWN_KIND);
  options.kind = NULL;
  CHECK(olaf_queue_new(&options, &queue) == OLAF_RESULT_BAD_POINTER);
  options.kind = "fifo";
  options.slots = 0;
  CHECK(olaf_queue_new(&options, &queue) == OLAF_RESULT_BAD_ARGUMENT);
  options.slots = 1;
  options.gate = -1;
  CHECK(olaf_queue_new(&options, &queue) == OLAF_RESULT_BAD_ARGUMENT);

  memset(&arrival, 0, sizeof arrival);
  arrival.update = update_of(1, 1, 0);
  CHECK(olaf_queue_arrive(NULL, 0, &arrival, &outcome) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_queue_arrive(queue, 0, NULL, &outcome) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_queue_arrive(queue, 0, &arrival, NULL) == OLAF_RESULT_BAD_POINTER);
  arrival.lane_count = 1;
  CHECK(olaf_queue_arrive(queue, 0, &arrival, &outcome) == OLAF_RESULT_BAD_POINTER);
  arrival.lane_count = (size_t)-1;
  CHECK(olaf_queue_arrive(queue, 0, &arrival, &outcome) == OLAF_RESULT_BAD_ARGUMENT);
  arrival.lane_count = 0;
  arrival.update.weight = 0;
  CHECK(olaf_queue_arrive(queue, 0, &arrival, &outcome) == OLAF_RESULT_BAD_ARGUMENT);
  arrival.update.weight = 1;
  arrival.update.hops = 256;
  CHECK(olaf_queue_arrive(queue, 0, &arrival, &outcome) == OLAF_RESULT_BAD_ARGUMENT);
  arrival.update.hops = 16;
  CHECK(olaf_queue_arrive(queue, 0, &arrival, &outcome) == OLAF_RESULT_OK);
  CHECK(outcome.fate == OLAF_FATE_REJECTED);
  CHECK(strcmp(olaf_rejection_name(outcome.rejection), "too_many_hops") == 0);

  CHECK(olaf_queue_begin(queue, 0, &entry) == OLAF_RESULT_NOTHING);
  CHECK(olaf_queue_begin(queue, 0, NULL) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_queue_contributors(queue, NULL, 0, &count) == OLAF_RESULT_NOTHING);
  CHECK(olaf_queue_end(NULL) == OLAF_RESULT_BAD_POINTER);
  /* The first refused call to olaf_queue_new left the pointer alone, so this is still a queue. */
  olaf_queue_free(queue);
  olaf_queue_free(NULL);
  CHECK(strcmp(olaf_result_text(OLAF_RESULT_TOO_SHORT), "a buffer is too short") == 0);
  CHECK(olaf_result_text(-7) != NULL);
}

static void bytes_go_out_and_come_back(void) {
  unsigned char datagram[1 + OLAF_UPDATE_HEADER_BYTES + 8];
  unsigned char *bytes = datagram + 1;
  const float lanes[2] = {1.5f, -2.0f};
  float read[2];
  olaf_update sent = update_of(3, 4, 5), got;
  size_t len = 0, lane_count = 0;
  sent.sequence = 6;
  sent.reward = 7.5;
  CHECK(olaf_update_emit(&sent, lanes, 2, bytes, 10, &len) == OLAF_RESULT_TOO_SHORT);
  CHECK(len == OLAF_UPDATE_HEADER_BYTES + 8);
  CHECK(olaf_update_emit(&sent, NULL, 2, bytes, len, &len) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_update_emit(&sent, lanes, 0, bytes, len, &len) == OLAF_RESULT_BAD_ARGUMENT);
  CHECK(olaf_update_emit(&sent, lanes, 2, NULL, len, &len) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_update_emit(&sent, lanes, 2, bytes, len, &len) == OLAF_RESULT_OK);
  CHECK(memcmp(bytes, "OLAF", 4) == 0);
  CHECK(olaf_update_parse(bytes, len, &got, &lane_count) == OLAF_RESULT_OK);
  CHECK(lane_count == 2 && memcmp(&got, &sent, sizeof sent) == 0);
  CHECK(olaf_lanes_read(bytes + OLAF_UPDATE_HEADER_BYTES, 2, read) == OLAF_RESULT_OK);
  CHECK(memcmp(read, lanes, sizeof lanes) == 0);
  {
    unsigned char header[OLAF_UPDATE_HEADER_BYTES];
    CHECK(olaf_update_emit_header(&sent, 2, header, 95) == OLAF_RESULT_TOO_SHORT);
    CHECK(olaf_update_emit_header(&sent, 0, header, 96) == OLAF_RESULT_BAD_ARGUMENT);
    CHECK(olaf_update_emit_header(&sent, 2, header, 96) == OLAF_RESULT_OK);
    CHECK(memcmp(header, bytes, sizeof header) == 0);
  }
  CHECK(olaf_update_parse(bytes, len - 1, &got, &lane_count) == OLAF_RESULT_MALFORMED);
  CHECK(olaf_update_parse(bytes + 1, len - 1, &got, &lane_count) == OLAF_RESULT_NOT_OURS);
  CHECK(olaf_update_parse(NULL, 4, &got, &lane_count) == OLAF_RESULT_BAD_POINTER);
  {
    const olaf_queue_status own = {20, 8, 8, 1, 77};
    CHECK(olaf_answer_stamp(bytes, len, &own) == OLAF_RESULT_OTHER_KIND);
    CHECK(olaf_answer_stamp(bytes, 4, &own) == OLAF_RESULT_MALFORMED);
    CHECK(olaf_answer_stamp(NULL, 4, &own) == OLAF_RESULT_BAD_POINTER);
    CHECK(olaf_update_parse(bytes, len, &got, &lane_count) == OLAF_RESULT_OK);
  }
}

int main(void) {
  CHECK(olaf_abi_version() == OLAF_ABI_VERSION);
  updates_of_a_cluster_merge_and_the_contributors_are_known();
  what_met_further_down_is_passed_on();
  fates_add_up();
  what_is_evicted_is_told();
  what_cannot_be_is_refused();
  bytes_go_out_and_come_back();
  puts("6 checks of olaf.h from C: ok");
  return 0;
}
