// Many random sums through the verilated `fp32_lanes`, each compared with the processor's own addition.
//
//   compare COUNT SEED    prints the number of sums; on the first that differs, prints it and ends with 1

#include "Vfp32_lanes.h"
#include "verilated.h"
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

static uint64_t state;

// splitmix64
static uint64_t draw() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Random bits find few of the interesting pairs: mostly the second exponent is near the first, and often
// runs of zeros or ones in the fractions make ties, carries and cancellations.
static void operands(uint32_t &a, uint32_t &b) {
    uint64_t bits = draw(), how = draw();
    a = uint32_t(bits), b = uint32_t(bits >> 32);
    if (how & 1) a &= ~0u << (how >> 8) % 32;
    if (how & 2) b |= (1u << (how >> 16) % 23) - 1;
    if ((how & 12) != 0) {
        int exponent = int(a >> 23 & 0xff) + int((how >> 24) % 53) - 26;
        exponent = exponent < 0 ? 0 : exponent > 255 ? 255 : exponent;
        b = (b & 0x807fffffu) | uint32_t(exponent) << 23;
    }
    if ((how & 0xf0) == 0) b = a ^ 0x80000000u ^ uint32_t(how >> 32) % 8;
}

static uint32_t sum_of_software(uint32_t a, uint32_t b) {
    float x, y;
    memcpy(&x, &a, 4), memcpy(&y, &b, 4);
    volatile float sum = x + y;
    float total = sum;
    uint32_t bits;
    memcpy(&bits, &total, 4);
    return std::isnan(total) ? 0x7fc00000u : bits;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const uint64_t count = strtoull(argv[1], nullptr, 0);
    state = strtoull(argv[2], nullptr, 0);
    const int lanes = LANES;
    VerilatedContext context;
    Vfp32_lanes top(&context);
    std::deque<std::vector<uint32_t>> expected;
    top.enable = 1;
    top.add = (1 << lanes) - 1;
    uint64_t sums = 0;
    for (uint64_t cycle = 0; sums < count; cycle++) {
        std::vector<uint32_t> row(3 * lanes);
        for (int lane = 0; lane < lanes; lane++) {
            operands(row[lane], row[lanes + lane]);
            row[2 * lanes + lane] = sum_of_software(row[lane], row[lanes + lane]);
            top.a[lane] = row[lane], top.b[lane] = row[lanes + lane];
        }
        expected.push_back(row);
        top.clk = 0, top.eval();
        top.clk = 1, top.eval();
        if (expected.size() < LATENCY) continue;
        const auto &oldest = expected.front();
        for (int lane = 0; lane < lanes; lane++, sums++) {
            if (top.sum[lane] == oldest[2 * lanes + lane]) continue;
            printf("%08x + %08x: %08x, the software says %08x\n", oldest[lane], oldest[lanes + lane],
                   unsigned(top.sum[lane]), oldest[2 * lanes + lane]);
            return 1;
        }
        expected.pop_front();
    }
    printf("%" PRIu64 " sums agree\n", sums);
    return 0;
}
