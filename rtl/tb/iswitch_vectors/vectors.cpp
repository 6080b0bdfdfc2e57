// Gradient vectors of several workers through the verilated `iswitch_accelerator`: how many cycles they take, and
// whether each sum has the bits of the processor's own additions, in the order of arrival.
//
//   vectors WORKERS FLOATS PACKET_FLOATS GAP_CENTICYCLES SEED     prints one line of JSON
//
// The packets of all workers come in turns: packet 0 of each, packet 1 of each .. GAP_CENTICYCLES hundredths of a
// cycle lie between the first beats of two packets, at least; 0: back to back. On a wrong sum it ends with 1.

#include "Viswitch_accelerator.h"
#include "verilated.h"
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using Bytes = std::vector<uint8_t>;
static constexpr int BEAT = 32;
static uint64_t state;

// splitmix64
static uint64_t draw() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void put(Bytes &bytes, uint64_t number, int size) {
    for (int at = size - 1; at >= 0; at--) bytes.push_back(uint8_t(number >> (8 * at)));
}

struct Bench {
    Viswitch_accelerator design;
    uint64_t cycle = 0, beats_in = 0, waits = 0, first_in = 0;
    uint64_t last_in = 0;
    Bytes partial;
    uint64_t partial_began = 0;
    // Of each datagram that left: its bytes, the cycles of its first and of its last beat.
    struct Left { Bytes body; bool control; uint64_t began, ended; };
    std::vector<Left> left;

    Bench() {
        design.clk = 0, design.rst = 1, design.epoch = 1, design.proofs = 0;
        design.s_axis_tvalid = 0, design.m_axis_tready = 1;
        design.s_axil_awvalid = design.s_axil_wvalid = design.s_axil_arvalid = 0;
        for (int i = 0; i < 4; i++) tick();
        design.rst = 0;
    }

    // The sink is always ready. Whether the offered beat was taken.
    bool tick() {
        design.eval();
        bool taken = design.s_axis_tvalid && design.s_axis_tready && !design.rst;
        if (design.m_axis_tvalid && !design.rst) {
            if (partial.empty()) partial_began = cycle;
            for (int at = 0; at < BEAT; at++)
                if (design.m_axis_tkeep >> at & 1)
                    partial.push_back(uint8_t(design.m_axis_tdata[at / 4] >> (8 * (at % 4))));
            if (design.m_axis_tlast) {
                left.push_back({partial, (design.m_axis_tuser >> 4 & 1) != 0, partial_began, cycle});
                partial.clear();
            }
        }
        design.clk = 1, design.eval(), design.clk = 0, design.eval();
        cycle++;
        return taken;
    }

    void send(const Bytes &body, unsigned port, bool control) {
        for (size_t at = 0; at < body.size(); at += BEAT) {
            uint8_t beat[BEAT] = {};
            size_t size = body.size() - at < BEAT ? body.size() - at : BEAT;
            memcpy(beat, &body[at], size);
            for (int lane = 0; lane < BEAT / 4; lane++) memcpy(&design.s_axis_tdata[lane], beat + 4 * lane, 4);
            design.s_axis_tkeep = uint32_t((uint64_t(1) << size) - 1);
            design.s_axis_tvalid = 1, design.s_axis_tlast = at + BEAT >= body.size();
            design.s_axis_tuser = uint8_t(control << 2 | port);
            while (!tick()) waits++;
            last_in = cycle - 1, beats_in++;
        }
        design.s_axis_tvalid = 0;
    }
};

int main(int count, char **argument) {
    if (count != 6) return 2;
    unsigned workers = unsigned(atoi(argument[1]));
    uint64_t floats = strtoull(argument[2], nullptr, 10);
    unsigned packet_floats = unsigned(atoi(argument[3]));
    uint64_t gap = strtoull(argument[4], nullptr, 10);
    state = strtoull(argument[5], nullptr, 10);
    Verilated::randReset(2), Verilated::randSeed(1 + int(state & 0xffff));
    if (workers < 1 || workers > 4 || !floats || packet_floats < 1 || packet_floats > 366) return 2;

    Bench bench;
    for (unsigned port = 0; port < workers; port++) {
        Bytes join{1, 0, 3, 0};
        for (uint32_t number : {7u, 100 + port, ~0u, workers, 1u, packet_floats, ~0u, 0u}) put(join, number, 4);
        bench.send(join, port, true);
    }
    for (int i = 0; i < 1000; i++) bench.tick();
    size_t messages = bench.left.size();

    uint64_t packets = (floats + packet_floats - 1) / packet_floats, wrong = 0;
    std::vector<std::vector<float>> sums(packets);
    std::vector<uint64_t> complete(packets);
    bench.beats_in = bench.waits = 0;
    uint64_t begin = bench.cycle, sent = 0;
    for (uint64_t index = 0; index < packets; index++) {
        bool last = index + 1 == packets;
        size_t size = last ? size_t(floats - index * packet_floats) : packet_floats;
        for (unsigned port = 0; port < workers; port++, sent++) {
            while ((bench.cycle - begin) * 100 < sent * gap) bench.tick();
            Bytes body;
            put(body, uint64_t(1) << 56 | uint64_t(last) << 55 | index, 8);
            for (size_t lane = 0; lane < size; lane++) {
                float number = float(int64_t(draw() >> 11) - (int64_t(1) << 52)) * 1e-14f;
                if (port == 0) sums[index].push_back(number);
                else sums[index][lane] += number;
                uint8_t bytes[4];
                memcpy(bytes, &number, 4);
                body.insert(body.end(), bytes, bytes + 4);
            }
            bench.send(body, port, false);
        }
        complete[index] = bench.last_in;
    }
    uint64_t end_in = bench.last_in;
    for (int i = 0; i < 1000; i++) bench.tick();

    uint64_t results = bench.left.size() - messages, least = ~uint64_t(0), most = 0;
    if (results != packets) wrong++;
    for (uint64_t index = 0; index < packets && index < results; index++) {
        const Bench::Left &out = bench.left[messages + index];
        Bytes head;
        put(head, uint64_t(1) << 56 | uint64_t(index + 1 == packets) << 55 | index, 8);
        bool same = !out.control && out.body.size() == 8 + 4 * sums[index].size()
            && !memcmp(out.body.data(), head.data(), 8)
            && !memcmp(out.body.data() + 8, sums[index].data(), 4 * sums[index].size());
        wrong += !same;
        uint64_t latency = out.began - complete[index];
        least = latency < least ? latency : least, most = latency > most ? latency : most;
    }
    uint64_t end = bench.left.empty() ? 0 : bench.left.back().ended;
    printf("{\"packets\": %" PRIu64 ", \"beats\": %" PRIu64 ", \"cycles_in\": %" PRIu64
           ", \"cycles\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"latency_least\": %" PRIu64
           ", \"latency_most\": %" PRIu64 ", \"wrong\": %" PRIu64 "}\n",
           packets * workers, bench.beats_in, end_in + 1 - begin, end + 1 - begin, bench.waits, least, most,
           wrong);
    return wrong != 0;
}
