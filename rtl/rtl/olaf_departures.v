// Sends entries from the slots, and other frames between them, a whole frame at a time. They take turns.
//
// An entry is locked when its turn comes. It leaves as an update of this switch:
// - session: that of this switch; hop sequence and flow sequence: its departures since the reset, from 0.
//   differs: OLAF has neither; a switch of olaf-engine counts hop sequences for each job and flow sequences for
//   each flow. A count for all needs no table. To the receiver it shows gaps where other flows departed.
// - hops: one more, 255 at most. Contributors: their sum. The bytes that are no field are zeros. The rest is in
//   the slot.
// - of an entry that was merged, the weight and the mean reward; what was never merged leaves as it came.
//   It waits for them; the mean is in the second beat, so the first may be read a cycle before the mean is known.
//
// Two beats of an entry can be in registers here when its slot is free again.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_departures #(
    // Slots, and bits of a slot's number.
    parameter SLOTS = 8,
    parameter SLOT = $clog2(SLOTS),
    // Bits of the number of a beat.
    parameter BEAT = 2
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [31:0]         session,

    // The entry that departs (`olaf_queue_control`), and how it is locked and freed.
    output wire                begin_departure,
    output wire                end_departure,
    input  wire                begun,
    input  wire                departing,
    input  wire [SLOT-1:0]     departing_slot,
    input  wire [31:0]         departing_contributors,
    input  wire [SLOT:0]       used,
    // Lanes of the entries, and whether they were merged.
    input  wire [16*SLOTS-1:0] slot_lanes,
    input  wire [SLOTS-1:0]    slot_merged,

    // Beats (`olaf_sums`): the first beat of the departing entry is not in the memory yet.
    input  wire                unsettled,
    output wire                read,
    output wire [BEAT-1:0]     read_beat,
    input  wire [511:0]        read_data,
    // Weight and mean reward of the departing entry (`olaf_mean`), or of the next one.
    output wire                look,
    output wire [SLOT-1:0]     look_slot,
    // The departing entry needs the mean now.
    output wire                look_now,
    // The mean is known; it will be in the next cycle.
    input  wire                known,
    input  wire                soon,
    input  wire [63:0]         known_weight,
    input  wire [63:0]         known_mean,

    // Other frames, whole.
    input  wire [511:0]        s_axis_tdata,
    input  wire [63:0]         s_axis_tkeep,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire                s_axis_tlast,

    output wire [511:0]        m_axis_tdata,
    output wire [63:0]         m_axis_tkeep,
    output wire                m_axis_tvalid,
    input  wire                m_axis_tready,
    output wire                m_axis_tlast
);

localparam HEADER_WORDS = 96 / 4;

function [31:0] long(input [31:0] number);
    long = {number[7:0], number[15:8], number[23:16], number[31:24]};
endfunction

function [63:0] wide(input [63:0] number);
    wide = {long(number[31:0]), long(number[63:32])};
endfunction

// 1: a beat is read. 2: it is at the output of the memory. 3: it is offered.
reg valid_2_reg = 0, valid_3_reg = 0;
wire moves_3 = !valid_3_reg || m_axis_tready;
wire moves_2 = !valid_2_reg || moves_3;

// The departing entry.
localparam [SLOT-1:0] LAST_SLOT = SLOTS[SLOT-1:0] - 1'b1;
reg [BEAT-1:0] beat_reg = 0;
wire [15:0] last_word = slot_lanes[16*departing_slot +: 16] + HEADER_WORDS[15:0] - 1'b1;
wire unused = &{1'b0, last_word[15:BEAT+4]};
wire was_merged = slot_merged[departing_slot];
wire starts = beat_reg == 0;
wire last = beat_reg == last_word[4 +: BEAT];
// It waits for its mean; before, the mean of the entry behind it is looked for.
wire waits = departing && starts && was_merged;
wire [SLOT-1:0] next_slot = departing_slot == LAST_SLOT ? {SLOT{1'b0}} : departing_slot + 1'b1;
wire entries = used > {{SLOT{1'b0}}, departing};
assign look_slot = waits || !departing ? departing_slot : next_slot;
assign look = (waits || entries) && slot_merged[look_slot];
assign look_now = waits;
assign read = moves_2 && departing && (!starts || (!unsettled && (!was_merged || known || soon)));
assign read_beat = beat_reg;
assign end_departure = read && last;

// Whose turn is next, where a frame ends. `others_reg`: it is the other frames' turn.
reg others_reg = 0, inside_reg = 0, was_entry_reg = 0;
assign s_axis_tready = others_reg && !valid_2_reg && moves_3;
wire other_beat = s_axis_tready && s_axis_tvalid;
wire entry_ends = !others_reg && (!departing || end_departure);
wire other_ends = others_reg && (inside_reg || s_axis_tvalid ? other_beat && s_axis_tlast && entries : 1'b1);
wire to_others = entry_ends && s_axis_tvalid && (was_entry_reg || !entries);
assign begin_departure = (entry_ends && !to_others) || other_ends;

// The header of the entry, taken with its first beat.
reg         merged_reg, late_reg = 0;
reg [31:0]  contributors_reg, departures_reg = 0, number_reg;
reg [63:0]  weight_reg, mean_reg;

reg         first_2_reg, second_2_reg, last_2_reg;
reg [63:0]  keep_2_reg;
reg         last_3_reg;
reg [511:0] data_3_reg;
reg [63:0]  keep_3_reg;

wire [7:0] hops = read_data[8*(88-64) +: 8];
reg [511:0] written;
always @* begin
    written = read_data;
    if (first_2_reg) begin
        written[8*20 +: 32] = long(session);
        written[8*28 +: 32] = long(number_reg);
    end
    if (second_2_reg) begin
        written[8*(64-64) +: 32] = long(contributors_reg);
        written[8*(88-64) +: 8] = hops == 8'hff ? 8'hff : hops + 1'b1;
        written[8*(89-64) +: 24] = 24'd0;
        written[8*(92-64) +: 32] = long(number_reg);
        if (merged_reg) begin
            written[8*(72-64) +: 64] = wide(weight_reg);
            written[8*(80-64) +: 64] = wide(mean_reg);
        end
    end
end

always @(posedge clk) begin
    if (read) begin
        beat_reg <= last ? {BEAT{1'b0}} : beat_reg + 1'b1;
        if (starts) begin
            departures_reg <= departures_reg + 1'b1;
            {number_reg, contributors_reg} <= {departures_reg, departing_contributors};
            {merged_reg, weight_reg} <= {was_merged, known_weight};
        end
        {first_2_reg, second_2_reg, last_2_reg} <= {starts, beat_reg == 1, last};
        keep_2_reg <= last ? {64{1'b1}} >> {4'd15 - last_word[3:0], 2'd0} : {64{1'b1}};
    end
    late_reg <= read && starts && !known;
    if ((read && starts) || late_reg) mean_reg <= known_mean;
    if (moves_2) valid_2_reg <= read;

    if (moves_3) begin
        valid_3_reg <= valid_2_reg || other_beat;
        {data_3_reg, keep_3_reg, last_3_reg} <= valid_2_reg
            ? {written, keep_2_reg, last_2_reg} : {s_axis_tdata, s_axis_tkeep, s_axis_tlast};
    end

    if (other_beat) inside_reg <= !s_axis_tlast;
    if (begun) was_entry_reg <= 1'b1;
    if (to_others) {others_reg, was_entry_reg} <= 2'b10;
    if (other_ends) others_reg <= 1'b0;

    if (rst) begin
        {valid_2_reg, valid_3_reg, others_reg, inside_reg, was_entry_reg, late_reg} <= 6'd0;
        beat_reg <= 0;
        departures_reg <= 0;
    end
end

assign m_axis_tdata = data_3_reg;
assign m_axis_tkeep = keep_3_reg;
assign m_axis_tvalid = valid_3_reg;
assign m_axis_tlast = last_3_reg;

`ifdef FORMAL
`include "olaf_departures_props.v"
`endif

endmodule

`resetall
