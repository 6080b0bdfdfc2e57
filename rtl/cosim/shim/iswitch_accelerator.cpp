// Pins of iswitch_accelerator. The structures are those of src/accelerator/pins.rs.
#include "shim.h"

struct In {
    uint32_t tdata[16];
    uint64_t tkeep;
    Ask ask;
    uint8_t rst, epoch, proofs, tuser, tvalid, tlast, tready;
};

struct Out {
    uint32_t tdata[16];
    uint64_t tkeep;
    Answer answer;
    uint16_t tuser;
    uint8_t s_tready, tvalid, tlast;
};

// Puts the inputs on the pins, lets them settle, and reads the outputs. No rising edge.
extern "C" void FUNCTION(settle)(Design* design, const In* in, Out* out) {
    MODEL& model = design->model;
    // A beat has 8 words or 16.
    const int words = sizeof(model.s_axis_tdata) / sizeof(uint32_t);
    model.clk = 0;
    model.rst = in->rst;
    model.epoch = in->epoch;
    model.proofs = in->proofs;
    for (int i = 0; i < words; i++) model.s_axis_tdata[i] = in->tdata[i];
    model.s_axis_tkeep = in->tkeep;
    model.s_axis_tuser = in->tuser;
    model.s_axis_tvalid = in->tvalid;
    model.s_axis_tlast = in->tlast;
    model.m_axis_tready = in->tready;
    put(model, in->ask);
    model.eval();
    for (int i = 0; i < words; i++) out->tdata[i] = model.m_axis_tdata[i];
    out->tkeep = model.m_axis_tkeep;
    out->tuser = model.m_axis_tuser;
    out->s_tready = model.s_axis_tready;
    out->tvalid = model.m_axis_tvalid;
    out->tlast = model.m_axis_tlast;
    get(model, out->answer);
}
