// Pins of olaf_queue_control. The structures are those of src/control/pins.rs.
#include "shim.h"

struct In {
    uint32_t flow[3];
    uint32_t worker;
    uint32_t contributors;
    uint8_t rst, arrive, not_finite, better, worse, no_sum, begin_departure, end_departure;
};

struct Out {
    uint32_t departing_flow[3];
    uint32_t departing_contributors;
    uint32_t displaced;
    uint8_t meets, slot, appended, merged, replaced, filtered, dropped, rejected;
    uint8_t departing, departing_slot, used, unused;
};

// Puts the inputs on the pins, lets them settle, and reads the outputs. No clock edge.
extern "C" void FUNCTION(settle)(Design* design, const In* in, Out* out) {
    MODEL& model = design->model;
    model.clk = 0;
    for (int i = 0; i < 3; i++) model.flow[i] = in->flow[i];
    model.worker = in->worker;
    model.contributors = in->contributors;
    model.rst = in->rst;
    model.arrive = in->arrive;
    model.not_finite = in->not_finite;
    model.better = in->better;
    model.worse = in->worse;
    model.no_sum = in->no_sum;
    model.begin_departure = in->begin_departure;
    model.end_departure = in->end_departure;
    model.eval();
    for (int i = 0; i < 3; i++) out->departing_flow[i] = model.departing_flow[i];
    out->departing_contributors = model.departing_contributors;
    out->displaced = model.displaced;
    out->meets = model.meets;
    out->slot = model.slot;
    out->appended = model.appended;
    out->merged = model.merged;
    out->replaced = model.replaced;
    out->filtered = model.filtered;
    out->dropped = model.dropped;
    out->rejected = model.rejected;
    out->departing = model.departing;
    out->departing_slot = model.departing_slot;
    out->used = model.used;
    out->unused = 0;
}
