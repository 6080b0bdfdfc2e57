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

struct Design {
    VerilatedContext context;
    MODEL model;
    // Registers without a value in the source begin with random bits of `seed`.
    explicit Design(uint32_t seed) : model((context.randReset(2), context.randSeed(seed), &context)) {
    }
};

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
