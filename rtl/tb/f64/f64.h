// Random pairs of f64, and the bits that the processor gives.

#pragma once

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static uint64_t state;

// splitmix64
static uint64_t draw() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Random bits find few of the interesting pairs. Exponents are chosen so that the exponent of the result (a
// sum has that of an operand, a product the sum, a quotient the difference) is often near the ends of the
// format. Runs of zeros or ones in the fractions make ties and carries. Some operands are subnormal, zero,
// infinite, or not numbers.
static uint64_t operand(uint64_t how, int exponent) {
    uint64_t bits = draw();
    if (how & 1) bits &= ~uint64_t(0) << (how >> 8) % 64;
    if (how & 2) bits |= (uint64_t(1) << (how >> 16) % 52) - 1;
    if ((how & 12) == 0) return bits;
    if (exponent < 0) exponent = 0;
    if (exponent > 2047) exponent = 2047;
    return (bits & 0x800fffffffffffffu) | uint64_t(exponent) << 52;
}

static void operands(uint64_t &a, uint64_t &b) {
    const uint64_t how = draw();
    const int bias = 1023, near = int((how >> 24) % 121) - 60;
    const int first = int((how >> 32) % 2048);
    a = operand(draw(), first);
    switch (how % 6) {
    case 0: b = operand(draw(), first + near); break;              // sums; quotients near 1
    case 1: b = operand(draw(), bias - first + near); break;       // products near the smallest
    case 2: b = operand(draw(), 2046 + bias - first + near); break;  // products near the largest
    case 3: b = operand(draw(), first + bias + near); break;       // quotients near the smallest
    case 4: b = operand(draw(), first - bias + near); break;       // quotients near the largest
    default: b = a ^ (uint64_t(how >> 40 & 1) << 63) ^ (how >> 44) % 8;
    }
}

static double number(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static uint64_t of_processor(char operation, uint64_t a, uint64_t b) {
    volatile double x = number(a), y = number(b);
    const double result = operation == '+' ? x + y : operation == '*' ? x * y : x / y;
    uint64_t bits;
    memcpy(&bits, &result, 8);
    return std::isnan(result) ? 0x7ff8000000000000u : bits;
}

static bool agrees(char operation, uint64_t a, uint64_t b, uint64_t mine) {
    const uint64_t theirs = of_processor(operation, a, b);
    if (mine != theirs)
        printf("%016" PRIx64 " %c %016" PRIx64 ": %016" PRIx64 ", the processor says %016" PRIx64 "\n",
               a, operation, b, mine, theirs);
    return mine == theirs;
}
