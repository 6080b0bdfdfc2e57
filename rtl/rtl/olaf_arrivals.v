// Decides about the updates in the store, one after the other, and sends their beats to the slots.
//
// The decision takes a cycle, the beats as many cycles as there are; the next decision falls into the cycle of
// the last beat. A sum must be known to be finite when it is decided to add: the entry would otherwise be
// spoilt. That is certain where no number is near the largest one. differs from `queue/slots.rs`, which adds and
// then looks: here only an update for which it is not certain is added twice, the first time for trial. Its
// result is the same; the update takes some forty cycles and its beats again.
//
// With the gate on, an arrival that meets an entry waits for the difference of their rewards.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_arrivals #(
    // Slots, and bits of a slot's number.
    parameter SLOTS = 8,
    parameter SLOT = $clog2(SLOTS),
    // Bits of the number of a beat.
    parameter BEAT = 2,
    // Bits of an address in the store.
    parameter ADDRESS = 5
) (
    input  wire               clk,
    input  wire               rst,

    // The oldest update in the store: lanes, whether a lane is not finite or large, whether its reward is finite.
    input  wire               valid,
    input  wire [15:0]        lanes,
    input  wire               lane_not_finite,
    input  wire               lane_large,
    input  wire               reward_not_finite,
    output wire               take,
    // Where it begins; the beat that is read. The beat is there a cycle later.
    output wire [ADDRESS-1:0] base,
    output wire [ADDRESS-1:0] read_address,

    // The decision (`olaf_queue_control`).
    output wire               arrive,
    output wire               not_finite,
    output wire               no_sum,
    input  wire               meets,
    input  wire [SLOT-1:0]    slot,
    input  wire               joins,
    input  wire               too_many,
    input  wire               appended,
    input  wire               merged,
    input  wire               replaced,
    input  wire               rejected,
    // With `rejected`, why: otherwise a number is not finite.
    output wire               wrong_size,
    output wire               overflow,

    // The gate says that it compared, and is told to begin. Without a gate, both are high.
    input  wire               gated,
    output wire               gate,

    // Weights and rewards (`olaf_mean`).
    output wire               mean_take,
    output wire               mean_add,
    output wire               mean_trial,
    input  wire               risky_product,
    input  wire               risky_sum,
    input  wire               tried,
    input  wire               product_overflowed,
    input  wire               sum_overflowed,

    // Beats (`olaf_sums`).
    output wire               issue,
    output wire [SLOT-1:0]    issue_slot,
    output wire [BEAT-1:0]    issue_beat,
    output wire [15:0]        issue_lanes,
    output wire               issue_add,
    output wire               issue_trial,
    input  wire               sum_not_finite,
    output wire [SLOTS-1:0]   anew,
    input  wire [SLOTS-1:0]   vast,

    // For each slot: its lanes, and whether its entry was merged.
    output wire [16*SLOTS-1:0] slot_lanes,
    output wire [SLOTS-1:0]    slot_merged
);

localparam HEADER_WORDS = 96 / 4;
// Cycles until everything that was issued is in the slots and in the sums of weights.
localparam [4:0] SETTLED = 16;
localparam [1:0] DECIDE = 0, DRAIN = 1, TRY = 2, SETTLE = 3;

reg [1:0]         state_reg = DECIDE;
reg [4:0]         wait_reg = 0;
reg               was_tried_reg = 0, lanes_overflowed_reg;
reg [ADDRESS-1:0] base_reg = 0;
// The beats of one update: of which, and how many.
reg               issue_reg = 0, add_reg, trial_reg;
reg [SLOT-1:0]    slot_reg;
reg [BEAT-1:0]    beat_reg, last_reg;
reg [15:0]        lanes_reg;
reg [16*SLOTS-1:0] slot_lanes_reg;
reg [SLOTS-1:0]   merged_reg, large_reg = 0;

wire [15:0] last_word = lanes + HEADER_WORDS[15:0] - 1'b1;
wire [BEAT-1:0] last = last_word[4 +: BEAT];
wire unused = &{1'b0, last_word};
wire ends = issue_reg && beat_reg == last_reg;
wire free = !issue_reg || ends;

// What has to be known first.
wire same_size = slot_lanes_reg[16*slot +: 16] == lanes;
wire risky_lanes = !lane_not_finite && (lane_large || large_reg[slot] || vast[slot]);
wire risky = !reward_not_finite && (risky_product || (joins && same_size && (risky_sum || risky_lanes)));
wire compares = meets && !gated;
wire decides = valid && free && state_reg == DECIDE && !compares && (!risky || was_tried_reg);
wire doubts = valid && free && state_reg == DECIDE && !compares && risky && !was_tried_reg;

wire product_not_finite = reward_not_finite || (was_tried_reg && product_overflowed);
wire sums_overflow = was_tried_reg && sum_overflowed;
assign arrive = decides;
assign not_finite = product_not_finite || lane_not_finite;
assign no_sum = !same_size || sums_overflow || (was_tried_reg && lanes_overflowed_reg);
assign take = decides;
assign wrong_size = rejected && !product_not_finite && joins && !same_size;
assign overflow = rejected && !product_not_finite && joins && same_size && (too_many || sums_overflow);

wire stores = appended || replaced || merged;
assign gate = valid && free && state_reg == DECIDE && compares;
wire tries = state_reg == TRY;
assign mean_take = stores || tries;
assign mean_add = merged || tries;
assign mean_trial = tries;
wire [SLOTS-1:0] one = 1;
wire [SLOTS-1:0] fresh = appended || replaced ? one << slot : {SLOTS{1'b0}};
assign anew = fresh;

assign base = base_reg;
assign read_address = base_reg + {{ADDRESS-BEAT{1'b0}}, beat_reg};
assign issue = issue_reg;
assign issue_slot = slot_reg;
assign issue_beat = beat_reg;
assign issue_lanes = lanes_reg;
assign issue_add = add_reg;
assign issue_trial = trial_reg;
assign slot_lanes = slot_lanes_reg;
assign slot_merged = merged_reg;

// Beats that are given back: those of the update that was just issued, those of one that goes to no slot.
wire [ADDRESS-1:0] issued = ends && !trial_reg ? beats(last_reg) : {ADDRESS{1'b0}};
wire [ADDRESS-1:0] refused = decides && !stores ? beats(last) : {ADDRESS{1'b0}};

function [ADDRESS-1:0] beats(input [BEAT-1:0] last_beat);
    beats = {{ADDRESS-BEAT{1'b0}}, last_beat} + 1'b1;
endfunction

integer i;
always @(posedge clk) begin
    base_reg <= base_reg + issued + refused;

    // An update that goes to a slot is issued from the next cycle on.
    if (issue_reg) begin
        beat_reg <= beat_reg + 1'b1;
        if (ends) issue_reg <= 1'b0;
    end
    if (stores || tries) begin
        issue_reg <= 1'b1;
        beat_reg <= 0;
        {slot_reg, last_reg, lanes_reg} <= {slot, last, lanes};
        {add_reg, trial_reg} <= {merged || tries, tries};
    end

    for (i = 0; i < SLOTS; i = i + 1) if (fresh[i]) begin
        slot_lanes_reg[16*i +: 16] <= lanes;
        merged_reg[i] <= 1'b0;
        large_reg[i] <= lane_large;
    end
    if (merged) merged_reg[slot] <= 1'b1;
    if (merged && lane_large) large_reg[slot] <= 1'b1;

    case (state_reg)
    DECIDE: begin
        wait_reg <= SETTLED;
        if (decides) was_tried_reg <= 1'b0;
        if (doubts) state_reg <= DRAIN;
    end
    DRAIN: begin
        wait_reg <= wait_reg - 1'b1;
        if (wait_reg == 0) state_reg <= TRY;
    end
    TRY: begin
        wait_reg <= SETTLED;
        lanes_overflowed_reg <= 1'b0;
        state_reg <= SETTLE;
    end
    default: begin
        if (sum_not_finite) lanes_overflowed_reg <= 1'b1;
        if (!issue_reg && wait_reg != 0) wait_reg <= wait_reg - 1'b1;
        if (wait_reg == 0 && tried) begin
            was_tried_reg <= 1'b1;
            state_reg <= DECIDE;
        end
    end
    endcase

    if (rst) begin
        state_reg <= DECIDE;
        base_reg <= 0;
        {issue_reg, was_tried_reg} <= 2'd0;
    end
end

`ifdef FORMAL
`include "olaf_arrivals_props.v"
`endif

endmodule

`resetall
