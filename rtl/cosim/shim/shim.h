// What every shim shares: one model in a context of its own, and a clock.
//
// NAME is the build, MODEL its class, HEADER the file of the class; build.rs defines them.
#pragma once
#include HEADER

#include <cstdint>
#include <cstring>

#include "verilated.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FUNCTION(name) JOIN(NAME, name)

// Each build has a Design of its own: without this, the linker would take one constructor for all of them.
namespace {
struct Design {
    VerilatedContext context;
    MODEL model;
    // Registers without a value in the source begin with random bits of `seed`.
    explicit Design(uint32_t seed) : model((context.randReset(2), context.randSeed(seed), &context)) {
    }
};
}  // namespace

extern "C" Design* FUNCTION(new)(uint32_t seed) {
    Design* design = new Design(static_cast<int>(seed & 0x7fffffff));
    design->model.clk = 0;
    design->model.eval();
    return design;
}

extern "C" void FUNCTION(free)(Design* design) {
    design->model.final();
    delete design;
}

// The rising edge. `settle` of the module puts the clock down again.
extern "C" void FUNCTION(tick)(Design* design) {
    design->model.clk = 1;
    design->model.eval();
}

// Reading of counters over AXI4-Lite; nothing is written. The structures are those of src/counters.rs.
struct Ask {
    uint16_t araddr;
    uint8_t arvalid, rready;
};

struct Answer {
    uint32_t rdata;
    uint8_t arready, rvalid, rresp;
};

template <class Model>
void put(Model& model, const Ask& ask) {
    model.s_axil_awaddr = 0;
    model.s_axil_awvalid = 0;
    model.s_axil_wdata = 0;
    model.s_axil_wstrb = 0;
    model.s_axil_wvalid = 0;
    model.s_axil_bready = 1;
    model.s_axil_araddr = ask.araddr;
    model.s_axil_arvalid = ask.arvalid;
    model.s_axil_rready = ask.rready;
}

template <class Model>
void get(const Model& model, Answer& answer) {
    answer.rdata = model.s_axil_rdata;
    answer.arready = model.s_axil_arready;
    answer.rvalid = model.s_axil_rvalid;
    answer.rresp = model.s_axil_rresp;
}
