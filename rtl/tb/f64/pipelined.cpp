// Many random pairs through a verilated `fp_add` or `fp_mul` in f64, each compared with the processor.
//
//   pipelined COUNT SEED    prints the number of results; on the first that differs, prints it and ends with 1
//
// Compiled with TOP (the class of the module), RESULT (its output), OPERATION ('+' or '*') and LATENCY.

#include "f64.h"
#include "top.h"
#include "verilated.h"
#include <deque>
#include <utility>

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const uint64_t count = strtoull(argv[1], nullptr, 0);
    state = strtoull(argv[2], nullptr, 0);
    VerilatedContext context;
    TOP top(&context);
    std::deque<std::pair<uint64_t, uint64_t>> inside;
    top.enable = 1;
    for (uint64_t done = 0; done < count;) {
        uint64_t a, b;
        operands(a, b);
        top.a = a, top.b = b;
        inside.push_back({a, b});
        top.clk = 0, top.eval();
        top.clk = 1, top.eval();
        if (inside.size() < LATENCY) continue;
        if (!agrees(OPERATION, inside.front().first, inside.front().second, top.RESULT)) return 1;
        inside.pop_front();
        done++;
    }
    printf("%" PRIu64 " results agree\n", count);
    return 0;
}
