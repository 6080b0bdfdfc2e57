// The slots' memory and the pipeline that writes it: a beat of an update takes the place of the beat in its
// slot, or is added to it.
//
// A beat that is issued in cycle t is read in t, with the beat in its slot; the two are in the adders from
// t + 1; the sum is there in t + 3, and in the memory from t + 4. The next update of the same slot may follow
// two cycles later, because an update has two beats at least. Its beat takes the sum from the adder, or from the
// register behind it, if the memory does not have it yet.
//
// The memory is there twice, because two beats are read in a cycle: for the sum, and for the departure.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_sums #(
    // Slots, and bits of a slot's number.
    parameter SLOTS = 8,
    parameter SLOT = $clog2(SLOTS),
    // Bits of the number of a beat.
    parameter BEAT = 2,
    // 1: block RAM. 0: LUT RAM.
    parameter BLOCK = 0
) (
    input  wire             clk,
    input  wire             rst,

    // A beat is issued. `arrived` is the update's beat, a cycle later.
    input  wire             issue,
    input  wire [SLOT-1:0]  slot,
    input  wire [BEAT-1:0]  beat,
    // Lanes of the update, 1 at least.
    input  wire [15:0]      lanes,
    // The beat is added to the one in the slot; otherwise it takes its place.
    input  wire             add,
    // The sum is computed, and not stored.
    input  wire             trial,
    input  wire [511:0]     arrived,

    // A lane of a sum that was issued three cycles before is infinite or not a number.
    output wire             not_finite,
    // For each slot: a lane of a sum was 2^113 or more since `anew`.
    input  wire [SLOTS-1:0] anew,
    output wire [SLOTS-1:0] vast,
    // The first beat of an update for `watched` was issued, and is not in the memory yet.
    input  wire [SLOT-1:0]  watched,
    output wire             unsettled,

    // For the departure: a beat, a cycle after `read`.
    input  wire             read,
    input  wire [SLOT-1:0]  read_slot,
    input  wire [BEAT-1:0]  read_beat,
    output wire [511:0]     read_data
);

localparam HEADER_WORDS = 96 / 4;
localparam [5:0] REGISTERS = 6'b100100;

// The lesser and the greater of two numbers in network byte order.
function [31:0] long(input [31:0] bytes);
    long = {bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24]};
endfunction

function [63:0] wide(input [63:0] bytes);
    wide = {long(bytes[31:0]), long(bytes[63:32])};
endfunction

// 1: the beat and the one in its slot.
reg            issued_1_reg = 0, add_1_reg, trial_1_reg, first_1_reg;
reg [SLOT-1:0] slot_1_reg;
reg [BEAT-1:0] beat_1_reg;
reg [15:0]     sums_1_reg;
wire [511:0]   stored;

// Lanes begin in the middle of the second beat and end with the update.
wire [15:0] words = lanes + HEADER_WORDS[15:0];
reg [15:0] sums;
integer i;
always @* begin
    for (i = 0; i < 16; i = i + 1)
        sums[i] = add && beat != 0 && !(beat == 1 && i < HEADER_WORDS - 16)
            && {{12-BEAT{1'b0}}, beat, i[3:0]} < words;
end

// 3 and 4: the sum, and the sum a cycle later.
reg            write_2_reg = 0, write_3_reg = 0, write_4_reg = 0;
reg            first_2_reg, first_3_reg;
reg            issued_2_reg = 0, issued_3_reg = 0;
reg [SLOT-1:0] slot_2_reg, slot_3_reg, slot_4_reg;
reg [BEAT-1:0] beat_2_reg, beat_3_reg, beat_4_reg;
reg [15:0]     sums_2_reg, sums_3_reg;
wire [511:0]   sum;
reg [511:0]    sum_4_reg;

wire from_3 = write_3_reg && slot_3_reg == slot_1_reg && beat_3_reg == beat_1_reg;
wire from_4 = write_4_reg && slot_4_reg == slot_1_reg && beat_4_reg == beat_1_reg;
wire [511:0] base = !add_1_reg ? arrived : from_3 ? sum : from_4 ? sum_4_reg : stored;

// The header of a sum is that of its first contributor, but for the ends of the times and of the versions, and
// the switches passed. Its contributors, weight and reward are kept elsewhere.
reg [511:0] into;
always @* begin
    into = base;
    if (add_1_reg && beat_1_reg == 0) begin
        if (wide(arrived[8*40 +: 64]) < wide(base[8*40 +: 64])) into[8*40 +: 64] = arrived[8*40 +: 64];
        if (wide(arrived[8*48 +: 64]) > wide(base[8*48 +: 64])) into[8*48 +: 64] = arrived[8*48 +: 64];
        if (long(arrived[8*56 +: 32]) < long(base[8*56 +: 32])) into[8*56 +: 32] = arrived[8*56 +: 32];
        if (long(arrived[8*60 +: 32]) > long(base[8*60 +: 32])) into[8*60 +: 32] = arrived[8*60 +: 32];
    end
    if (add_1_reg && beat_1_reg == 1 && arrived[8*(88-64) +: 8] > base[8*(88-64) +: 8])
        into[8*(88-64) +: 8] = arrived[8*(88-64) +: 8];
end

wire [15:0] lane_not_finite;
fp32_lanes #(.LANES(16), .REGISTERS(REGISTERS)) adders (
    .clk(clk), .enable(1'b1), .add(sums_1_reg), .a(into), .b(arrived),
    .sum(sum), .not_finite(lane_not_finite)
);

reg lane_large;
always @* begin
    lane_large = 1'b0;
    for (i = 0; i < 16; i = i + 1) if (sums_3_reg[i] && (&sum[32*i + 27 +: 4])) lane_large = 1'b1;
end

reg [SLOTS-1:0] large_reg = 0;
wire [SLOTS-1:0] one = 1;
wire [SLOTS-1:0] here = one << slot_3_reg;
assign vast = large_reg;
assign not_finite = issued_3_reg && lane_not_finite != 0;
assign unsettled = (issue && beat == 0 && slot == watched)
    || (issued_1_reg && first_1_reg && slot_1_reg == watched)
    || (issued_2_reg && first_2_reg && slot_2_reg == watched)
    || (issued_3_reg && first_3_reg && slot_3_reg == watched);

always @(posedge clk) begin
    {issued_1_reg, add_1_reg, trial_1_reg, first_1_reg} <= {issue, add, trial, beat == 0};
    {slot_1_reg, beat_1_reg, sums_1_reg} <= {slot, beat, sums};
    {issued_2_reg, write_2_reg, first_2_reg} <= {issued_1_reg, issued_1_reg && !trial_1_reg, first_1_reg};
    {slot_2_reg, beat_2_reg, sums_2_reg} <= {slot_1_reg, beat_1_reg, sums_1_reg};
    {issued_3_reg, write_3_reg, first_3_reg} <= {issued_2_reg, write_2_reg, first_2_reg};
    {slot_3_reg, beat_3_reg, sums_3_reg} <= {slot_2_reg, beat_2_reg, sums_2_reg};
    write_4_reg <= write_3_reg;
    {slot_4_reg, beat_4_reg, sum_4_reg} <= {slot_3_reg, beat_3_reg, sum};
    large_reg <= (large_reg | (write_3_reg && lane_large ? here : {SLOTS{1'b0}})) & ~anew;
    if (rst) begin
        {issued_1_reg, issued_2_reg, issued_3_reg} <= 3'd0;
        {write_2_reg, write_3_reg, write_4_reg} <= 3'd0;
    end
end

ram #(.WIDTH(512), .DEPTH(1 << (SLOT + BEAT)), .BLOCK(BLOCK)) for_sums (
    .clk(clk),
    .write(write_3_reg), .write_address({slot_3_reg, beat_3_reg}), .write_data(sum),
    .read(1'b1), .read_address({slot, beat}), .read_data(stored)
);

ram #(.WIDTH(512), .DEPTH(1 << (SLOT + BEAT)), .BLOCK(BLOCK)) for_departures (
    .clk(clk),
    .write(write_3_reg), .write_address({slot_3_reg, beat_3_reg}), .write_data(sum),
    .read(read), .read_address({read_slot, read_beat}), .read_data(read_data)
);

`ifdef FORMAL
`include "olaf_sums_props.v"
`endif

endmodule

`resetall
