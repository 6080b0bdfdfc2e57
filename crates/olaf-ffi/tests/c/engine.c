/* Whole engines from C: a worker trains through a switch with a server, and this program is the
 * network between them. Exit status 1 and a line on stderr name the first thing that was not so. */

#include "olaf.h"

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

enum { WORKER, SWITCH, SERVER, NODES };

static olaf_engine *nodes[NODES];
static uint64_t now_ns = 1000000000u;
static uint8_t datagram[OLAF_DATAGRAM_MAX];

static olaf_engine *engine_of(const char *role, const char *config) {
  olaf_engine *engine = NULL;
  char why[200] = "";
  if (olaf_engine_new(role, config, 7, why, sizeof why, &engine) != OLAF_RESULT_OK) {
    fprintf(stderr, "%s: %s\n", role, why);
    exit(1);
  }
  return engine;
}

/* Delivers what a node sends by now; the number of datagrams. */
static unsigned deliver_from(uint32_t at) {
  unsigned sent = 0;
  uint16_t ports = 0;
  CHECK(olaf_engine_ports(nodes[at], &ports) == OLAF_RESULT_OK && ports == (at == SWITCH ? 2 : 1));
  for (uint16_t port = 0; port < ports; port++) {
    olaf_transmit transmit;
    while (olaf_engine_poll_transmit(nodes[at], now_ns, port, datagram, sizeof datagram,
                                     &transmit) == OLAF_RESULT_OK) {
      uint32_t to = NODES;
      olaf_verdict verdict;
      olaf_source from = {at, 0, transmit.traffic_class};
      CHECK(transmit.receivers == 1);
      CHECK(olaf_engine_receivers(nodes[at], &to, 1) == OLAF_RESULT_OK && to < NODES);
      from.port = to == SWITCH && at == WORKER ? 1 : 0;
      CHECK(olaf_engine_handle_packet(nodes[to], now_ns, &from, datagram, transmit.len,
                                      &verdict) == OLAF_RESULT_OK);
      CHECK(verdict.kind == OLAF_VERDICT_ABSORBED && verdict.reason[0] == 0);
      sent++;
    }
  }
  return sent;
}

static void run(unsigned milliseconds) {
  while (milliseconds-- > 0) {
    now_ns += 1000000;
    for (uint32_t at = 0; at < NODES; at++) {
      uint64_t due = 0;
      const olaf_result timed = olaf_engine_poll_timeout(nodes[at], &due);
      CHECK(timed == OLAF_RESULT_OK || timed == OLAF_RESULT_NOTHING);
      if (timed == OLAF_RESULT_OK && due <= now_ns) {
        CHECK(olaf_engine_handle_timeout(nodes[at], now_ns) == OLAF_RESULT_OK);
      }
    }
    while (deliver_from(WORKER) + deliver_from(SWITCH) + deliver_from(SERVER) > 0) {
    }
  }
}

static void trains(void) {
  const float model[3] = {1, 2, 3};
  const float update[3] = {10, 20, 30};
  float pulled[3] = {0, 0, 0};
  uint32_t sequence = 9, version = 0;
  CHECK(olaf_engine_pull(nodes[WORKER], 0, pulled, 3, &version) == OLAF_RESULT_NOTHING);
  CHECK(olaf_engine_join(nodes[WORKER], now_ns, model, 3) == OLAF_RESULT_OK);
  run(100);
  CHECK(olaf_engine_pull(nodes[WORKER], 0, pulled, 3, &version) == OLAF_RESULT_OK);
  CHECK(memcmp(pulled, model, sizeof model) == 0);
  CHECK(olaf_engine_push(nodes[WORKER], now_ns, update, 3, 1.5, 1.0, &sequence) == OLAF_RESULT_OK);
  CHECK(sequence == 0);
  run(100);
  const uint32_t before = version;
  CHECK(olaf_engine_pull(nodes[WORKER], before, pulled, 3, &version) == OLAF_RESULT_OK);
  CHECK(version > before && memcmp(pulled, model, sizeof model) != 0);
}

static void tells(void) {
  char text[4096];
  size_t len = 0;
  /* Too short: the event stays. */
  CHECK(olaf_engine_poll_event(nodes[WORKER], text, 4, &len) == OLAF_RESULT_TOO_SHORT && len > 4);
  CHECK(olaf_engine_poll_event(nodes[WORKER], text, sizeof text, &len) == OLAF_RESULT_OK);
  CHECK(strlen(text) == len && strstr(text, "\"joined\"") != NULL);
  while (olaf_engine_poll_event(nodes[WORKER], text, sizeof text, &len) == OLAF_RESULT_OK) {
  }
  CHECK(olaf_engine_report(nodes[SWITCH], now_ns, text, sizeof text, &len) == OLAF_RESULT_OK);
  CHECK(strlen(text) == len && strstr(text, "\"received\":1") != NULL);
  CHECK(olaf_engine_report(nodes[SWITCH], now_ns, NULL, 0, &len) == OLAF_RESULT_TOO_SHORT);
}

static void refuses(void) {
  olaf_engine *none = NULL;
  char why[200] = "";
  uint32_t sequence = 0;
  olaf_verdict verdict;
  olaf_transmit transmit;
  const float one = 1;
  const olaf_source from = {WORKER, 0, 0};
  CHECK(olaf_engine_new("gateway", NULL, 1, why, sizeof why, &none) == OLAF_RESULT_BAD_ARGUMENT);
  CHECK(strstr(why, "server, worker") != NULL && none == NULL);
  CHECK(olaf_engine_new("switch", "{\"slots\": 0}", 1, why, sizeof why, &none) ==
        OLAF_RESULT_BAD_ARGUMENT);
  CHECK(strstr(why, "slots") != NULL);
  CHECK(olaf_engine_push(nodes[SERVER], now_ns, &one, 1, 0, 1, &sequence) ==
        OLAF_RESULT_BAD_ARGUMENT);
  CHECK(olaf_engine_poll_transmit(nodes[SERVER], now_ns, 0, datagram, 100, &transmit) ==
        OLAF_RESULT_TOO_SHORT);
  CHECK(olaf_engine_handle_packet(nodes[SERVER], now_ns, &from, (const uint8_t *)"no", 2,
                                  &verdict) == OLAF_RESULT_OK);
  CHECK(verdict.kind == OLAF_VERDICT_DROPPED && strcmp(verdict.reason, "not_ours") == 0);
  CHECK(olaf_engine_handle_packet(NULL, now_ns, &from, NULL, 0, &verdict) ==
        OLAF_RESULT_BAD_POINTER);
  olaf_engine_free(NULL);
}

int main(void) {
  CHECK(olaf_abi_version() == OLAF_ABI_VERSION);
  nodes[WORKER] = engine_of("worker", "{\"worker\": 5, \"switch\": 1}");
  nodes[SWITCH] = engine_of("switch", "{\"server\": 2, \"slots\": 4}");
  nodes[SERVER] = engine_of("server", NULL);
  trains();
  tells();
  refuses();
  for (uint32_t at = 0; at < NODES; at++) {
    olaf_engine_free(nodes[at]);
  }
  puts("whole engines from C: ok");
  return 0;
}
