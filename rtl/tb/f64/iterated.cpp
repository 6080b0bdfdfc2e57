// Many random pairs through the verilated `fp_div` in f64, each compared with the processor.
//
//   iterated COUNT SEED    prints the number of results and the most cycles of one; on the first that differs,
//                          prints it and ends with 1

#include "f64.h"
#include "top.h"
#include "verilated.h"

static void tick(TOP &top) {
    top.clk = 0, top.eval();
    top.clk = 1, top.eval();
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const uint64_t count = strtoull(argv[1], nullptr, 0);
    state = strtoull(argv[2], nullptr, 0);
    VerilatedContext context;
    TOP top(&context);
    top.rst = 1, tick(top);
    top.rst = 0, top.m_ready = 1;
    unsigned most = 0;
    for (uint64_t done = 0; done < count; done++) {
        uint64_t a, b;
        operands(a, b);
        top.a = a, top.b = b, top.s_valid = 1;
        if (!top.s_ready) return printf("not ready\n"), 1;
        tick(top);
        top.s_valid = 0, top.a = 0, top.b = 0;
        unsigned cycles = 1;
        for (; !top.m_valid; cycles++) {
            tick(top);
            if (cycles > 1000) return printf("no quotient comes\n"), 1;
        }
        if (cycles > most) most = cycles;
        if (!agrees('/', a, b, top.quotient)) return 1;
        tick(top);
    }
    printf("%" PRIu64 " results agree, at most %u cycles\n", count, most);
    return 0;
}
