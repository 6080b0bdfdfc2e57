// The decisions of the OLAF queue (OLAF §4, Algorithm 1, §12.1; docs/queue.md): which slot an update
// goes to, which entry it meets, what becomes of it, and which entry departs. No data pass through it.
//
// Entries leave in the order in which they came, and an entry that merges or is replaced keeps its
// place. The slots are therefore a ring: the oldest entry is at `head`, the next free slot behind the
// newest. differs: OLAF §4 keeps two rings of segment addresses, available_mem_addrs and out_mem_addrs,
// and a table with a row for each cluster (§12.1). Here a slot holds its flow, and an arrival is compared
// with all slots at once: there may be any number of flows, and none has to be known before.
//
// In one cycle up to three things happen, in this order: the departing entry ends, the next one is
// locked, an update arrives. An arrival thus finds the slot free that its entry leaves in the same
// cycle, and does not meet an entry that is locked in the same cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_queue_control #(
    // Entries that the queue holds, the departing one included; at least 2.
    parameter SLOTS = 8,
    // Bits of a flow: what two updates must have in common to merge (job, cluster, segment).
    parameter FLOW = 96,
    // Bits of a worker's number.
    parameter WORKER = 32,
    // Bits of the number of contributors.
    parameter COUNT = 32,
    // Bits of a slot's number.
    parameter SLOT = $clog2(SLOTS)
) (
    input  wire              clk,
    input  wire              rst,

    // An update arrives: its flow, its worker, its contributors.
    input  wire              arrive,
    input  wire [FLOW-1:0]   flow,
    input  wire [WORKER-1:0] worker,
    input  wire [COUNT-1:0]  contributors,
    // A value or the reward is not finite: rejected, before every other rule.
    input  wire              not_finite,
    // The reward is above that of the entry it meets by more than the threshold, or below. Without
    // a gate both are 0.
    input  wire              better,
    input  wire              worse,
    // The sum with the entry that it meets is not possible: overflow, another number of values.
    input  wire              no_sum,

    // The entry that `flow` meets, in the same cycle: `better`, `worse` and `no_sum` are about it.
    output wire              meets,
    output wire [SLOT-1:0]   slot,
    // The arrival would be added to that entry; their contributors are too many for one number.
    output wire              joins,
    output wire              too_many,
    // What becomes of the arrival, in the same cycle. With `arrive`, exactly one is high.
    output wire              appended,
    output wire              merged,
    output wire              replaced,
    output wire              filtered,
    output wire              dropped,
    output wire              rejected,
    // With `replaced`: contributors of the entry that is gone.
    output wire [COUNT-1:0]  displaced,

    // The link is free: the oldest entry is locked, if one waits and none departs.
    input  wire              begin_departure,
    // The last beat has left: the slot is free.
    input  wire              end_departure,
    // An entry is locked in this cycle.
    output wire              begun,
    // An entry departs: its slot, its flow and its contributors.
    output wire              departing,
    output wire [SLOT-1:0]   departing_slot,
    output wire [FLOW-1:0]   departing_flow,
    output wire [COUNT-1:0]  departing_contributors,

    // Slots that hold an entry, the departing one included (OLAF §5: the status in an answer).
    output wire [SLOT:0]     used
);

generate
    if (SLOTS < 2 || SLOT != $clog2(SLOTS)) begin : g_illegal
        olaf_queue_control_needs_two_slots illegal();
    end
endgenerate

localparam [SLOT:0] ALL = SLOTS[SLOT:0];

// A slot after the last is the first.
function [SLOT-1:0] wrapped(input [SLOT:0] number);
    wrapped = number >= ALL ? number[SLOT-1:0] - ALL[SLOT-1:0] : number[SLOT-1:0];
endfunction

reg [SLOTS-1:0]   open_reg = 0;
reg [SLOTS-1:0]   replaceable_reg = 0;
reg [FLOW-1:0]    flow_reg [0:SLOTS-1];
reg [WORKER-1:0]  worker_reg [0:SLOTS-1];
reg [COUNT-1:0]   contributors_reg [0:SLOTS-1];
reg [SLOT-1:0]    head_reg = 0;
reg [SLOT:0]      used_reg = 0;
reg               departing_reg = 0;

// First: the departing entry ends.
wire ends = end_departure && departing_reg;
wire [SLOT-1:0] head_after = ends ? wrapped({1'b0, head_reg} + 1'b1) : head_reg;
wire [SLOT:0] used_after = ends ? used_reg - 1'b1 : used_reg;

// Second: the oldest entry is locked (OLAF §12.1). From then on it takes nothing in.
wire begins = begin_departure && (!departing_reg || ends) && used_after != 0;

// Third: the arrival. At most one open entry is of its flow.
reg [SLOTS-1:0] meets_at;
reg [SLOT-1:0]  met;
integer i;
always @* begin
    met = 0;
    for (i = 0; i < SLOTS; i = i + 1) begin
        meets_at[i] = open_reg[i] && flow_reg[i] == flow && !(begins && head_after == i[SLOT-1:0]);
        if (meets_at[i]) met = met | i[SLOT-1:0];
    end
end

wire single = contributors == 1;
// Algorithm 1, line 8: the newer update of the same worker subsumes the older one.
wire same_worker = replaceable_reg[met] && single && worker_reg[met] == worker;
wire [COUNT:0] total = {1'b0, contributors_reg[met]} + {1'b0, contributors};
wire replaces = same_worker || better;
wire filters = !same_worker && !better && worse;
wire merges = !same_worker && !better && !worse;
wire sums = !no_sum && !total[COUNT];
wire full = used_after == ALL;

assign meets = meets_at != 0;
assign slot = meets ? met : wrapped({1'b0, head_after} + used_after);
assign joins = meets && merges;
assign too_many = total[COUNT];
assign appended = arrive && !not_finite && !meets && !full;
assign dropped  = arrive && !not_finite && !meets && full;
assign replaced = arrive && !not_finite && meets && replaces;
assign filtered = arrive && !not_finite && meets && filters;
assign merged   = arrive && !not_finite && meets && merges && sums;
assign rejected = arrive && (not_finite || (meets && merges && !sums));
assign displaced = contributors_reg[met];

assign begun = begins;
assign departing = departing_reg;
assign departing_slot = head_reg;
assign departing_flow = flow_reg[head_reg];
assign departing_contributors = contributors_reg[head_reg];
assign used = used_reg;

always @(posedge clk) begin
    head_reg <= head_after;
    departing_reg <= begins || (departing_reg && !ends);
    used_reg <= appended ? used_after + 1'b1 : used_after;
    if (begins) open_reg[head_after] <= 1'b0;
    if (appended) open_reg[slot] <= 1'b1;
    if (appended || replaced) begin
        flow_reg[slot] <= flow;
        worker_reg[slot] <= worker;
        contributors_reg[slot] <= contributors;
        // A merge from a lower switch holds others' experience too: never replaceable.
        replaceable_reg[slot] <= single;
    end
    if (merged) begin
        contributors_reg[slot] <= total[COUNT-1:0];
        replaceable_reg[slot] <= 1'b0;
    end
    if (rst) begin
        open_reg <= 0;
        head_reg <= 0;
        used_reg <= 0;
        departing_reg <= 0;
    end
end

`ifdef FORMAL
`include "olaf_queue_control_props.v"
`endif

endmodule

`resetall
