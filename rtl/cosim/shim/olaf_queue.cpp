// Pins of olaf_queue. The structures are those of src/frames/pins.rs.
#include "shim.h"

struct In {
    uint32_t tdata[16];
    uint64_t tkeep;
    uint64_t gate_threshold;
    uint32_t session;
    uint32_t round_us;
    uint16_t active_clusters;
    uint16_t araddr;
    uint8_t rst, gate, tvalid, tlast, tready, arvalid, rready, unused;
};

struct Out {
    uint32_t tdata[16];
    uint64_t tkeep;
    uint32_t rdata;
    uint8_t s_tready, tvalid, tlast, fate, begun, ended, arready, rvalid, rresp;
    uint8_t unused[3];
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
    model.s_axil_awaddr = 0;
    model.s_axil_awvalid = 0;
    model.s_axil_wdata = 0;
    model.s_axil_wstrb = 0;
    model.s_axil_wvalid = 0;
    model.s_axil_bready = 1;
    model.s_axil_araddr = in->araddr;
    model.s_axil_arvalid = in->arvalid;
    model.s_axil_rready = in->rready;
    model.eval();
    for (int i = 0; i < 16; i++) out->tdata[i] = model.m_axis_tdata[i];
    out->tkeep = model.m_axis_tkeep;
    out->rdata = model.s_axil_rdata;
    out->s_tready = model.s_axis_tready;
    out->tvalid = model.m_axis_tvalid;
    out->tlast = model.m_axis_tlast;
    out->fate = model.fate;
    out->begun = model.begun;
    out->ended = model.ended;
    out->arready = model.s_axil_arready;
    out->rvalid = model.s_axil_rvalid;
    out->rresp = model.s_axil_rresp;
}
