// Pins of olaf_queue. The structures are those of src/frames/pins.rs.
#include "shim.h"

struct In {
    uint32_t tdata[16];
    uint64_t tkeep;
    uint64_t gate_threshold;
    uint32_t session;
    uint32_t round_us;
    uint16_t active_clusters;
    Ask ask;
    uint8_t rst, gate, tvalid, tlast, tready;
};

struct Out {
    uint32_t tdata[16];
    uint64_t tkeep;
    Answer answer;
    uint8_t s_tready, tvalid, tlast, fate, begun, ended;
};

// Puts the inputs on the pins, lets them settle, and reads the outputs. No rising edge.
extern "C" void FUNCTION(settle)(Design* design, const In* in, Out* out) {
    MODEL& model = design->model;
    model.clk = 0;
    model.rst = in->rst;
    model.session = in->session;
    model.gate = in->gate;
    model.gate_threshold = in->gate_threshold;
    model.active_clusters = in->active_clusters;
    model.round_us = in->round_us;
    for (int i = 0; i < 16; i++) model.s_axis_tdata[i] = in->tdata[i];
    model.s_axis_tkeep = in->tkeep;
    model.s_axis_tvalid = in->tvalid;
    model.s_axis_tlast = in->tlast;
    model.m_axis_tready = in->tready;
    put(model, in->ask);
    model.eval();
    for (int i = 0; i < 16; i++) out->tdata[i] = model.m_axis_tdata[i];
    out->tkeep = model.m_axis_tkeep;
    get(model, out->answer);
    out->s_tready = model.s_axis_tready;
    out->tvalid = model.m_axis_tvalid;
    out->tlast = model.m_axis_tlast;
    out->fate = model.fate;
    out->begun = model.begun;
    out->ended = model.ended;
}
