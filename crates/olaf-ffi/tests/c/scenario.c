/* A scenario and its ends from C: this program is the network and the queue between two workers
 * and their server. Exit status 1 and a line on stderr name the first thing that was not so. */

#include "olaf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                      \
  do {                                                                   \
    if (!(what)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

/* Two workers of one cluster under a control that discards, below a queue of one slot. */
#define SCENARIO                                                                                \
  "{\"seed\":1,\"duration_ns\":1000000000,\"control\":{\"kind\":\"%s\",\"unsent\":\"discard\"}," \
  "\"switches\":[{\"name\":\"S\",\"queue\":\"olaf\",\"slots\":1,\"rate_bps\":1000000}],"        \
  "\"groups\":[{\"name\":\"G\",\"switch\":\"S\",\"clusters\":1,\"workers\":2,"                 \
  "\"interval_ns\":100000000,\"packet_bytes\":1030}]}"

enum { LANES = 2, ANSWER_DELAY_NS = 1000000 };

static uint8_t datagram[OLAF_DATAGRAM_MAX];
static olaf_transmit transmit;

static olaf_scenario *scenario_of(const char *control) {
  char json[1024], why[64];
  olaf_scenario *scenario = NULL;
  snprintf(json, sizeof json, SCENARIO, control);
  CHECK(olaf_scenario_new(json, why, sizeof why, &scenario) == OLAF_RESULT_OK);
  return scenario;
}

static uint64_t due_of(const olaf_engine *engine) {
  uint64_t at_ns = 0;
  CHECK(olaf_engine_poll_timeout(engine, &at_ns) == OLAF_RESULT_OK);
  return at_ns;
}

/* The receivers of what the engine sends at its time, written to `datagram`; 0: nothing. */
static size_t sent_by(olaf_engine *engine, uint64_t now_ns) {
  CHECK(olaf_engine_handle_timeout(engine, now_ns) == OLAF_RESULT_OK);
  const olaf_result result =
      olaf_engine_poll_transmit(engine, now_ns, 0, datagram, sizeof datagram, &transmit);
  CHECK(result == OLAF_RESULT_OK || result == OLAF_RESULT_NOTHING);
  return result == OLAF_RESULT_OK ? transmit.receivers : 0;
}

static void hand(olaf_engine *engine, uint64_t now_ns) {
  const olaf_source from = {0, 0, 0};
  olaf_verdict verdict;
  CHECK(olaf_engine_handle_packet(engine, now_ns, &from, datagram, transmit.len, &verdict) ==
        OLAF_RESULT_OK);
  CHECK(verdict.kind == OLAF_VERDICT_ABSORBED);
}

static void a_scenario_is_told(void) {
  char why[64], *outcome;
  olaf_scenario *scenario = NULL;
  olaf_scenario_shape shape;
  olaf_switch_spec of_switch;
  olaf_group_spec group;
  size_t len = 0;
  CHECK(olaf_scenario_new("{", NULL, 0, &scenario) == OLAF_RESULT_BAD_ARGUMENT);
  CHECK(olaf_scenario_new(NULL, why, sizeof why, &scenario) == OLAF_RESULT_BAD_POINTER);
  {
    char json[1024];
    snprintf(json, sizeof json, SCENARIO, "none");
    CHECK(olaf_scenario_new(json, why, sizeof why, &scenario) == OLAF_RESULT_BAD_ARGUMENT);
    CHECK(strstr(why, "none") != NULL && strlen(why) < sizeof why && scenario == NULL);
  }
  scenario = scenario_of("paper");
  CHECK(olaf_scenario_get_shape(scenario, &shape) == OLAF_RESULT_OK);
  CHECK(shape.workers == 2 && shape.switches == 1 && shape.groups == 1 && !shape.notices);
  CHECK(olaf_scenario_get_switch(scenario, 0, &of_switch) == OLAF_RESULT_OK);
  CHECK(strcmp(of_switch.name, "S") == 0 && of_switch.upstream == OLAF_SERVER);
  CHECK(isnan(of_switch.gate) && of_switch.slots == 1);
  CHECK(olaf_scenario_get_switch(scenario, 1, &of_switch) == OLAF_RESULT_NOTHING);
  CHECK(olaf_scenario_get_group(scenario, 0, &group) == OLAF_RESULT_OK);
  CHECK(group.workers == 2 && group.switch_index == 0 && group.packet_bytes == 1030);
  CHECK(olaf_scenario_run(scenario, NULL, 0, &len) == OLAF_RESULT_TOO_SHORT);
  outcome = malloc(len);
  CHECK(outcome != NULL);
  CHECK(olaf_scenario_run(scenario, outcome, len - 1, &len) == OLAF_RESULT_TOO_SHORT);
  CHECK(olaf_scenario_run(scenario, outcome, len, &len) == OLAF_RESULT_OK);
  CHECK(strlen(outcome) + 1 == len && strstr(outcome, "\"generated\":20") != NULL);
  free(outcome);
  olaf_scenario_free(scenario);
}

static void its_ends_run_in_another_simulator(void) {
  olaf_scenario *scenario = scenario_of("paper");
  olaf_engine *ends[3] = {NULL, NULL, NULL}; /* two workers, the server */
  const olaf_contributor met[2] = {{0, 1, OLAF_PART_REPLACED}, {5, 0, OLAF_PART_SUMMED}};
  const olaf_queue_status crowd = {60000, 1, 1, 1, 77};
  olaf_fates fates;
  uint32_t to[2] = {9, 9};
  uint64_t now_ns;
  char text[8192];
  size_t len = 0, lane_count = 0;
  olaf_update update;
  CHECK(olaf_scenario_worker(scenario, 0, LANES, &ends[0]) == OLAF_RESULT_OK);
  CHECK(olaf_scenario_worker(scenario, 1, LANES, &ends[1]) == OLAF_RESULT_OK);
  CHECK(olaf_scenario_worker(scenario, 2, LANES, &ends[2]) == OLAF_RESULT_BAD_ARGUMENT);
  CHECK(olaf_scenario_worker(scenario, 0, 0, &ends[2]) == OLAF_RESULT_BAD_ARGUMENT);
  CHECK(olaf_scenario_server(NULL, &ends[2]) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_scenario_server(scenario, &ends[2]) == OLAF_RESULT_OK);

  /* Nothing was heard: the worker sends. Both had a part in what comes to the server. */
  now_ns = due_of(ends[0]);
  CHECK(sent_by(ends[0], now_ns) == 1);
  CHECK(olaf_update_parse(datagram, transmit.len, &update, &lane_count) == OLAF_RESULT_OK);
  CHECK(lane_count == LANES && update.generated_newest_ns == now_ns && update.contributors == 1);
  CHECK(olaf_scenario_met(ends[2], NULL, 2) == OLAF_RESULT_BAD_POINTER);
  CHECK(olaf_scenario_met(ends[2], met, 2) == OLAF_RESULT_OK);
  hand(ends[2], now_ns);
  now_ns += ANSWER_DELAY_NS;
  CHECK(due_of(ends[2]) == now_ns && sent_by(ends[2], now_ns) == 2);
  CHECK(olaf_engine_receivers(ends[2], to, 2) == OLAF_RESULT_OK && to[0] == 0 && to[1] == 1);

  /* A queue with a slot for sixty thousand clusters: now it sends hardly ever. */
  CHECK(olaf_answer_stamp(datagram, transmit.len, &crowd) == OLAF_RESULT_OK);
  hand(ends[0], now_ns);
  now_ns = due_of(ends[0]);
  CHECK(sent_by(ends[0], now_ns) == 0);
  CHECK(olaf_engine_report(ends[0], now_ns, text, sizeof text, &len) == OLAF_RESULT_OK);
  CHECK(strstr(text, "\"generated\":2") != NULL && strstr(text, "\"discarded\":1") != NULL);
  CHECK(olaf_engine_join(ends[0], now_ns, NULL, 0) == OLAF_RESULT_BAD_ARGUMENT);

  memset(&fates, 0, sizeof fates);
  fates.packets_received = 7;
  CHECK(olaf_scenario_outcome(scenario, (const olaf_engine *const *)ends, 2, &fates, 1, text,
                              sizeof text, &len) == OLAF_RESULT_BAD_ARGUMENT);
  CHECK(olaf_scenario_outcome(scenario, (const olaf_engine *const *)ends, 3, &fates, 1, text, 9,
                              &len) == OLAF_RESULT_TOO_SHORT);
  CHECK(olaf_scenario_outcome(scenario, (const olaf_engine *const *)ends, 3, &fates, 1, text,
                              sizeof text, &len) == OLAF_RESULT_OK);
  CHECK(strlen(text) + 1 == len && strstr(text, "\"delivered\":1,") != NULL);
  CHECK(strstr(text, "\"packets_received\":7") != NULL);
  for (len = 0; len < 3; len++) {
    olaf_engine_free(ends[len]);
  }
  olaf_scenario_free(scenario);
}

static void notices_follow_what_a_queue_takes_in(void) {
  olaf_scenario *scenario = scenario_of("fair");
  olaf_scenario_shape shape;
  olaf_engine *worker = NULL, *notices = NULL;
  uint64_t now_ns;
  CHECK(olaf_scenario_get_shape(scenario, &shape) == OLAF_RESULT_OK && shape.notices);
  CHECK(olaf_scenario_worker(scenario, 1, LANES, &worker) == OLAF_RESULT_OK);
  CHECK(olaf_scenario_notices(scenario, &notices) == OLAF_RESULT_OK);
  now_ns = due_of(worker);
  CHECK(sent_by(worker, now_ns) == 1);
  hand(notices, now_ns);
  CHECK(due_of(notices) == now_ns + ANSWER_DELAY_NS);
  CHECK(sent_by(notices, now_ns + ANSWER_DELAY_NS) == 2);
  hand(worker, now_ns + ANSWER_DELAY_NS);
  olaf_engine_free(worker);
  olaf_engine_free(notices);
  olaf_scenario_free(scenario);
}

int main(void) {
  CHECK(olaf_abi_version() == OLAF_ABI_VERSION);
  a_scenario_is_told();
  its_ends_run_in_another_simulator();
  notices_follow_what_a_queue_takes_in();
  puts("a scenario's ends from C: ok");
  return 0;
}
