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
                           float value, uint64_t tag) {
  /* Lanes need no alignment: these begin at an odd address. */
  unsigned char lanes[1 + 2 * sizeof(float)];
  const float values[2] = {value, 2 * value};
  olaf_arrival arrival;
  olaf_outcome outcome;
  memcpy(lanes + 1, values, sizeof values);
  memset(&arrival, 0, sizeof arrival);
  arrival.update = update_of(cluster, worker, now_ns);
  arrival.bytes = 1030;
  arrival.tag = tag;
  arrival.lanes = lanes + 1;
  arrival.lane_count = 2;
  CHECK(olaf_queue_arrive(queue, now_ns, &arrival, &outcome) == OLAF_RESULT_OK);
  return outcome;
}

static void updates_of_a_cluster_merge_and_the_sharers_are_known(void) {
  olaf_queue *queue = queue_of("olaf", 2);
  olaf_entry entry;
  olaf_sharer sharers[4];
  size_t count = 0;
  CHECK(arrive(queue, 1, 7, 1, 1.0f, 100).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 2, 7, 1, 5.0f, 101).fate == OLAF_FATE_REPLACED);
  CHECK(arrive(queue, 3, 7, 2, 3.0f, 102).fate == OLAF_FATE_MERGED);
  CHECK(arrive(queue, 4, 8, 3, 0.0f, 103).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 5, 9, 4, 0.0f, 104).fate == OLAF_FATE_DROPPED);

  CHECK(olaf_queue_peek(queue, &entry) == OLAF_RESULT_OK && entry.update.cluster == 7);
  CHECK(olaf_queue_departing(queue, &entry) == OLAF_RESULT_NOTHING);
  CHECK(olaf_queue_begin(queue, 6, &entry) == OLAF_RESULT_OK);
  CHECK(entry.update.contributors == 2 && entry.update.weight == 2.0 && entry.update.hops == 1);
  CHECK(entry.update.generated_oldest_ns == 2 && entry.update.generated_newest_ns == 3);
  CHECK(entry.lane_count == 2 && entry.lanes[0] == 8.0f && entry.lanes[1] == 16.0f);
  CHECK(entry.sharers == 3);
  CHECK(olaf_queue_begin(queue, 6, &entry) == OLAF_RESULT_DEPARTING);

  /* A short buffer is told how much it takes and stays as it was. */
  memset(sharers, UNTOUCHED, sizeof sharers);
  CHECK(olaf_queue_sharers(queue, sharers, 2, &count) == OLAF_RESULT_TOO_SHORT && count == 3);
  CHECK(((unsigned char *)sharers)[0] == UNTOUCHED);
  CHECK(olaf_queue_sharers(queue, sharers, 4, &count) == OLAF_RESULT_OK && count == 3);
  CHECK(sharers[0].tag == 100 && sharers[0].part == OLAF_PART_REPLACED);
  CHECK(sharers[1].tag == 101 && sharers[1].part == OLAF_PART_SUMMED);
  CHECK(sharers[2].tag == 102 && sharers[2].part == OLAF_PART_SUMMED);

  /* The locked head keeps its slot and takes nothing in. */
  CHECK(arrive(queue, 7, 7, 5, 1.0f, 105).fate == OLAF_FATE_DROPPED);
  CHECK(olaf_queue_end(queue) == OLAF_RESULT_OK);
  CHECK(olaf_queue_end(queue) == OLAF_RESULT_NOTHING);
  CHECK(arrive(queue, 8, 7, 5, 1.0f, 106).fate == OLAF_FATE_APPENDED);
  olaf_queue_free(queue);
}

static void fates_add_up(void) {
  olaf_queue *queue = queue_of("fifo", 2);
  olaf_queue_status status;
  olaf_entry entry;
  olaf_fates f;
  CHECK(arrive(queue, 1, 7, 1, 1.0f, 0).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 2, 7, 1, 1.0f, 0).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 3, 8, 1, 1.0f, 0).fate == OLAF_FATE_DROPPED);
  {
    olaf_outcome refused = arrive(queue, 4, 9, 1, INFINITY, 0);
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
  CHECK(f.received ==
        f.sent_alone + f.merged + f.replaced + f.filtered + f.dropped + f.rejected + f.waiting);
  olaf_queue_free(queue);
}

static void what_is_evicted_is_told(void) {
  olaf_queue *queue = queue_of("freshest", 1);
  olaf_entry entry;
  olaf_sharer sharers[2];
  olaf_outcome outcome;
  olaf_fates f;
  size_t count;
  CHECK(arrive(queue, 1, 7, 1, 1.0f, 100).fate == OLAF_FATE_APPENDED);
  CHECK(olaf_queue_begin(queue, 1, &entry) == OLAF_RESULT_OK);
  CHECK(olaf_queue_end(queue) == OLAF_RESULT_OK);
  /* The server knows of cluster 7 and nothing of cluster 8, which is worth more. */
  CHECK(arrive(queue, 2, 7, 1, 1.0f, 101).fate == OLAF_FATE_APPENDED);
  CHECK(arrive(queue, 3, 7, 2, 1.0f, 102).fate == OLAF_FATE_MERGED);
  CHECK(olaf_queue_evicted(queue, sharers, 2, &count) == OLAF_RESULT_NOTHING);
  outcome = arrive(queue, 4, 8, 3, 1.0f, 103);
  CHECK(outcome.fate == OLAF_FATE_EVICTED && outcome.displaced == 2);
  CHECK(outcome.evicted == 1 && outcome.entry == 2);
  CHECK(olaf_queue_evicted(queue, sharers, 2, &count) == OLAF_RESULT_OK && count == 2);
  CHECK(sharers[0].tag == 101 && sharers[1].tag == 102);
  CHECK(arrive(queue, 5, 8, 3, 1.0f, 104).fate == OLAF_FATE_REPLACED);
  CHECK(olaf_queue_evicted(queue, sharers, 2, &count) == OLAF_RESULT_NOTHING);
  CHECK(olaf_queue_get_fates(queue, &f) == OLAF_RESULT_OK);
  CHECK(f.received == 5 && f.sent_alone == 1 && f.dropped == 2 && f.replaced == 1);
  CHECK(f.waiting == 1);
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
  CHECK(olaf_queue_sharers(queue, NULL, 0, &count) == OLAF_RESULT_NOTHING);
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
  olaf_answer answer, heard;
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
  CHECK(olaf_answer_parse(bytes, len, &heard) == OLAF_RESULT_OTHER_KIND);

  memset(&answer, 0, sizeof answer);
  answer.job = 1;
  answer.cluster = 3;
  answer.worker = 4;
  answer.segments = 1;
  answer.server_time_ns = 99;
  answer.queue.slots = 8;
  answer.queue.switches = 1;
  CHECK(olaf_answer_emit(&answer, bytes, 95) == OLAF_RESULT_TOO_SHORT);
  CHECK(olaf_answer_emit(&answer, bytes, OLAF_ANSWER_BYTES) == OLAF_RESULT_OK);
  CHECK(olaf_answer_parse(bytes, OLAF_ANSWER_BYTES, &heard) == OLAF_RESULT_OK);
  CHECK(heard.server_time_ns == 99 && heard.queue.slots == 8 && heard.worker == 4);
  CHECK(olaf_update_parse(bytes, OLAF_ANSWER_BYTES, &got, &lane_count) == OLAF_RESULT_OTHER_KIND);

  /* The most crowded queue is told, with the longest round; the ages stay. */
  {
    olaf_queue_status own = {20, 8, 8, 1, 77};
    answer.own_age_us = 5;
    answer.mean_age_us = 6;
    answer.queue.round_us = 99;
    CHECK(olaf_answer_stamp(NULL, &own) == OLAF_RESULT_BAD_POINTER);
    CHECK(olaf_answer_stamp(&answer, &own) == OLAF_RESULT_OK);
    CHECK(answer.queue.active_clusters == 20 && answer.queue.switches == 2);
    CHECK(answer.queue.round_us == 99);
    CHECK(olaf_answer_emit(&answer, bytes, OLAF_ANSWER_BYTES) == OLAF_RESULT_OK);
    CHECK(olaf_answer_parse(bytes, OLAF_ANSWER_BYTES, &heard) == OLAF_RESULT_OK);
    CHECK(memcmp(&heard.queue, &answer.queue, sizeof heard.queue) == 0);
    CHECK(heard.own_age_us == 5 && heard.mean_age_us == 6);
  }
  {
    olaf_notice notice = {1, 2, 3, 4, 5}, read_notice;
    CHECK(olaf_notice_emit(&notice, bytes, 31) == OLAF_RESULT_TOO_SHORT);
    CHECK(olaf_notice_emit(&notice, bytes, OLAF_NOTICE_BYTES) == OLAF_RESULT_OK);
    CHECK(olaf_notice_parse(bytes, OLAF_NOTICE_BYTES, &read_notice) == OLAF_RESULT_OK);
    CHECK(memcmp(&notice, &read_notice, sizeof notice) == 0);
    CHECK(olaf_answer_parse(bytes, OLAF_NOTICE_BYTES, &heard) == OLAF_RESULT_OTHER_KIND);
    CHECK(olaf_notice_parse(NULL, OLAF_NOTICE_BYTES, &read_notice) == OLAF_RESULT_BAD_POINTER);
  }
}

/* Two workers of one cluster under a control that discards, below a queue of one slot. */
#define SCENARIO                                                                             \
  "{\"seed\":1,\"duration_ns\":1000000000,\"control\":{\"kind\":\"%s\",\"unsent\":\"discard\"},"  \
  "\"switches\":[{\"name\":\"S\",\"queue\":\"olaf\",\"slots\":1,\"rate_bps\":1000000}],"         \
  "\"groups\":[{\"name\":\"G\",\"switch\":\"S\",\"clusters\":1,\"workers\":2,"                  \
  "\"interval_ns\":100000000,\"packet_bytes\":1030}]}"

static void a_scenario_is_told_and_its_senders_decide(void) {
  char json[1024], why[64], *outcome;
  olaf_scenario *scenario = NULL;
  olaf_scenario_shape shape;
  olaf_switch_spec of_switch;
  olaf_group_spec group;
  olaf_sender *sender = NULL;
  olaf_sender_counts counts;
  olaf_decision decision;
  olaf_feedback feedback;
  uint64_t ready[16];
  size_t count = 0, len = 0, i;
  memset(why, UNTOUCHED, sizeof why);
  snprintf(json, sizeof json, SCENARIO, "none");
  CHECK(olaf_scenario_new(json, why, sizeof why, &scenario) == OLAF_RESULT_BAD_ARGUMENT);
  CHECK(strstr(why, "none") != NULL && strlen(why) < sizeof why);
  CHECK(olaf_scenario_new("{", NULL, 0, &scenario) == OLAF_RESULT_BAD_ARGUMENT);
  CHECK(olaf_scenario_new(NULL, why, sizeof why, &scenario) == OLAF_RESULT_BAD_POINTER);
  CHECK(scenario == NULL);
  snprintf(json, sizeof json, SCENARIO, "paper");
  CHECK(olaf_scenario_new(json, why, sizeof why, &scenario) == OLAF_RESULT_OK);
  CHECK(olaf_scenario_get_shape(scenario, &shape) == OLAF_RESULT_OK);
  CHECK(shape.workers == 2 && shape.switches == 1 && shape.groups == 1 && !shape.notices);
  CHECK(olaf_scenario_get_switch(scenario, 0, &of_switch) == OLAF_RESULT_OK);
  CHECK(strcmp(of_switch.name, "S") == 0 && of_switch.upstream == OLAF_SERVER);
  CHECK(isnan(of_switch.gate) && of_switch.slots == 1);
  CHECK(olaf_scenario_get_switch(scenario, 1, &of_switch) == OLAF_RESULT_NOTHING);
  CHECK(olaf_scenario_get_group(scenario, 0, &group) == OLAF_RESULT_OK);
  CHECK(group.workers == 2 && group.switch_index == 0 && group.packet_bytes == 1030);
  CHECK(olaf_scenario_get_ready(scenario, 1, ready, 1, &count) == OLAF_RESULT_TOO_SHORT);
  CHECK(count == 10 && olaf_scenario_get_ready(scenario, 1, ready, 16, &count) == OLAF_RESULT_OK);
  CHECK(ready[1] - ready[0] == 100000000);
  CHECK(olaf_scenario_get_ready(scenario, 2, ready, 16, &count) == OLAF_RESULT_NOTHING);
  CHECK(olaf_scenario_run(scenario, NULL, 0, &len) == OLAF_RESULT_TOO_SHORT);
  outcome = malloc(len);
  CHECK(outcome != NULL);
  CHECK(olaf_scenario_run(scenario, outcome, len - 1, &len) == OLAF_RESULT_TOO_SHORT);
  CHECK(olaf_scenario_run(scenario, outcome, len, &len) == OLAF_RESULT_OK);
  CHECK(strlen(outcome) + 1 == len && strstr(outcome, "\"generated\":20") != NULL);
  free(outcome);

  /* Nothing was heard: it sends. A queue with a slot for every thousand clusters: hardly ever. */
  CHECK(olaf_sender_new(scenario, 0, &sender) == OLAF_RESULT_OK);
  olaf_scenario_free(scenario);
  CHECK(olaf_sender_ready(sender, 10, &decision) == OLAF_RESULT_OK);
  CHECK(decision.action == OLAF_ACTION_SEND && decision.contributors == 1);
  CHECK(decision.generated_oldest_ns == 10 && decision.generated_newest_ns == 10);
  memset(&feedback, 0, sizeof feedback);
  feedback.queue.active_clusters = 60000;
  feedback.queue.slots = 1;
  feedback.queue.switches = 1;
  CHECK(olaf_sender_hear(sender, 20, &feedback) == OLAF_RESULT_OK);
  CHECK(olaf_sender_hear(sender, 20, NULL) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_sender_taken(sender, 20, 10) == OLAF_RESULT_OK);
  for (i = 0; i < 10; i++) {
    CHECK(olaf_sender_ready(sender, 30 + i, &decision) == OLAF_RESULT_OK);
    CHECK(decision.action == OLAF_ACTION_HOLD);
  }
  CHECK(olaf_sender_get_counts(sender, &counts) == OLAF_RESULT_OK);
  CHECK(counts.decisions == 11 && counts.discarded == 10 && counts.held == 0);
  CHECK(counts.probability_sum > 1 && counts.probability_sum < 1.01);
  olaf_sender_free(sender);
}

static void ages_of_late_are_told(void) {
  olaf_recent_ages *ages = NULL;
  uint32_t own_us = 9, mean_us = 9;
  CHECK(olaf_recent_ages_new(&ages) == OLAF_RESULT_OK);
  CHECK(olaf_recent_ages_get(ages, 1, 5000, &own_us, &mean_us) == OLAF_RESULT_OK);
  CHECK(own_us == 0 && mean_us == 0);
  CHECK(olaf_recent_ages_deliver(ages, 1, 20000000, 10000000) == OLAF_RESULT_OK);
  CHECK(olaf_recent_ages_deliver(ages, 2, 20000000, 0) == OLAF_RESULT_OK);
  CHECK(olaf_recent_ages_get(ages, 1, 20000000, &own_us, &mean_us) == OLAF_RESULT_OK);
  CHECK(own_us == 10000 && mean_us == 15000);
  CHECK(olaf_recent_ages_get(ages, 1, 20000000, NULL, &mean_us) == OLAF_RESULT_BAD_POINTER);
  olaf_recent_ages_free(ages);
}

static void ages_are_sawteeth(void) {
  const double values[4] = {4, 0, 0, 0};
  olaf_age *age = NULL;
  double mean = -1, jain = -1;
  uint64_t now = 0;
  CHECK(olaf_age_new(&age) == OLAF_RESULT_OK);
  CHECK(olaf_age_mean(age, 30, &mean) == OLAF_RESULT_NOTHING && mean == -1);
  CHECK(olaf_age_deliver(age, 10, 4) == OLAF_RESULT_OK);
  CHECK(olaf_age_deliver(age, 20, 15) == OLAF_RESULT_OK);
  CHECK(olaf_age_mean(age, 30, &mean) == OLAF_RESULT_OK && mean == 10.5);
  CHECK(olaf_age_peak_mean(age, &mean) == OLAF_RESULT_OK && mean == 16);
  CHECK(olaf_age_now(age, 30, &now) == OLAF_RESULT_OK && now == 15);
  CHECK(olaf_age_now(NULL, 30, &now) == OLAF_RESULT_BAD_POINTER);
  olaf_age_free(age);

  /* One that starves is as old as it is observed. */
  CHECK(olaf_age_new(&age) == OLAF_RESULT_OK);
  CHECK(olaf_age_now(age, 30, &now) == OLAF_RESULT_NOTHING);
  CHECK(olaf_age_observe_from(age, 10) == OLAF_RESULT_OK);
  CHECK(olaf_age_now(age, 30, &now) == OLAF_RESULT_OK && now == 20);
  CHECK(olaf_age_mean(age, 30, &mean) == OLAF_RESULT_OK && mean == 10);
  olaf_age_free(age);
  CHECK(olaf_jain(values, 4, &jain) == OLAF_RESULT_OK && jain == 0.25);
  CHECK(olaf_jain(NULL, 4, &jain) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_jain(NULL, 0, &jain) == OLAF_RESULT_NOTHING);
}

int main(void) {
  CHECK(olaf_abi_version() == OLAF_ABI_VERSION);
  updates_of_a_cluster_merge_and_the_sharers_are_known();
  fates_add_up();
  what_is_evicted_is_told();
  what_cannot_be_is_refused();
  bytes_go_out_and_come_back();
  ages_are_sawteeth();
  ages_of_late_are_told();
  a_scenario_is_told_and_its_senders_decide();
  puts("8 checks of olaf.h from C: ok");
  return 0;
}
