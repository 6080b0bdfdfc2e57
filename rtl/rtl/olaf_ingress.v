// Looks at the frames that come in: which are updates, which are something else, which are malformed.
//
// A frame is a datagram from its first byte, at the offsets of olaf-wire/src/offsets.rs. An update begins with
// magic "OLAF", version 3 and kind 1, an answer with kind 2 or 3. What is no update is passed on. A malformed
// frame is dropped. A frame is malformed if
// - a byte in its middle is not kept, or no byte of its last beat is kept (`framing`);
// - it is longer than FRAME bytes (`too_long`);
// - it begins as an update or as an answer, and olaf-wire refuses it (`refused`; `olaf_identifier`).
//
// A beat leaves two cycles after it came. What is known of a frame is known with its last beat.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_ingress #(
    // Bytes of the longest frame.
    parameter FRAME = 256,
    // Bits of the number of a beat.
    parameter BEAT = $clog2((FRAME + 63) / 64)
) (
    input  wire            clk,
    input  wire            rst,

    input  wire [511:0]    s_axis_tdata,
    input  wire [63:0]     s_axis_tkeep,
    input  wire            s_axis_tvalid,
    output wire            s_axis_tready,
    input  wire            s_axis_tlast,
    // There is room for the beats to come.
    input  wire            room,

    // A beat of an update, or of something else. With the last beat, `good` says that the frame is not
    // malformed. Beats beyond FRAME bytes do not come out, but for the last one.
    output wire            update,
    output wire            other,
    output wire [511:0]    data,
    output wire [63:0]     keep,
    output wire            last,
    output wire            good,
    // With the last beat of a frame: why it is malformed.
    output wire            framing,
    output wire            too_long,
    output wire            refused,

    // With the last beat of an update: its header.
    output wire [95:0]     flow,
    output wire [31:0]     worker,
    output wire [31:0]     contributors,
    output wire [15:0]     lanes,
    output wire [63:0]     weight,
    output wire [63:0]     reward,
    // A lane is infinite or not a number; a lane is 2^113 or more.
    output wire            not_finite,
    output wire            vast
);

localparam BEATS = (FRAME + 63) / 64;
localparam [31:0] MAGIC = {8'h46, 8'h41, 8'h4c, 8'h4f};  // "OLAF", its first byte lowest
localparam [7:0] VERSION = 3;
localparam [7:0] UPDATE = 1;
localparam [7:0] ACKNOWLEDGEMENT = 2;
localparam [7:0] MODEL = 3;
// Words of four bytes of the header.
localparam HEADER_WORDS = 96 / 4;
// Kept bytes of beat BEATS - 1 in a frame of FRAME bytes.
localparam [63:0] LAST_KEEP = {64{1'b1}} >> (64*BEATS - FRAME);

generate
    if (FRAME < 128 || FRAME > 65507 || BEAT != $clog2(BEATS)) begin : g_illegal
        olaf_ingress_needs_two_beats illegal();
    end
endgenerate

// 1: the beat.
reg         valid_1_reg = 0, last_1_reg;
reg [511:0] data_1_reg;
reg [63:0]  keep_1_reg;

assign s_axis_tready = room;

// The number of a beat; it stops one behind the last that fits.
reg [BEAT:0] beat_reg = 0;
reg          update_reg, answer_reg;
wire first = beat_reg == 0;
wire second = beat_reg == 1;
wire beyond = beat_reg == BEATS[BEAT:0];
wire [7:0] kind = data_1_reg[8*5 +: 8];
wire ours = data_1_reg[31:0] == MAGIC && data_1_reg[8*4 +: 8] == VERSION && keep_1_reg[5];
wire is_update = first ? ours && kind == UPDATE : update_reg;
wire is_answer = first ? ours && (kind == ACKNOWLEDGEMENT || kind == MODEL) : answer_reg;
// The kept bytes are the first ones, and there is one.
wire dense = keep_1_reg[0] && (last_1_reg ? (keep_1_reg & (keep_1_reg + 1'b1)) == 0 : &keep_1_reg);
wire longer = beyond
    || (beat_reg == BEATS[BEAT:0] - 1'b1 && (!last_1_reg || (keep_1_reg & ~LAST_KEEP) != 0));

// Lanes begin in the middle of the second beat.
reg lane_not_finite, lane_large;
integer i;
always @* begin
    {lane_not_finite, lane_large} = 2'd0;
    for (i = 0; i < 16; i = i + 1)
        if (!first && !(second && i < HEADER_WORDS - 16) && keep_1_reg[4*i]) begin
            if (&data_1_reg[32*i + 23 +: 8]) lane_not_finite = 1'b1;
            if (&data_1_reg[32*i + 27 +: 4]) lane_large = 1'b1;
        end
end

// 2: what is known of the frame, its beat in `data_2_reg` included.
reg         valid_2_reg = 0, update_2_reg, answer_2_reg, last_2_reg, beyond_2_reg;
reg [511:0] data_2_reg;
reg [63:0]  keep_2_reg;
reg         framing_reg, long_reg, not_finite_reg, large_reg;

always @(posedge clk) begin
    valid_1_reg <= s_axis_tvalid && s_axis_tready;
    {data_1_reg, keep_1_reg, last_1_reg} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast};

    valid_2_reg <= valid_1_reg;
    {data_2_reg, keep_2_reg, last_2_reg} <= {data_1_reg, keep_1_reg, last_1_reg};
    {update_2_reg, answer_2_reg, beyond_2_reg} <= {is_update, is_answer, beyond};
    if (valid_1_reg) begin
        beat_reg <= last_1_reg ? {BEAT+1{1'b0}} : beyond ? beat_reg : beat_reg + 1'b1;
        {update_reg, answer_reg} <= {is_update, is_answer};
        framing_reg <= (!first && framing_reg) || !dense;
        long_reg <= (!first && long_reg) || longer;
        not_finite_reg <= (!first && not_finite_reg) || lane_not_finite;
        large_reg <= (!first && large_reg) || lane_large;
    end
    if (rst) begin
        {valid_1_reg, valid_2_reg} <= 2'd0;
        beat_reg <= 0;
    end
end

// The header. The verdict stands in the cycle of the last beat here.
wire [31:0] job, cluster, segment, session_unused, number_unused;
wire        identified, answers, ended_unused;
wire [13:0] lanes_14;
olaf_identifier identifier (
    .clk(clk), .rst(rst),
    .tdata(data_1_reg), .tkeep(keep_1_reg), .passes(valid_1_reg), .tlast(last_1_reg),
    .ended(ended_unused), .update(identified), .answer(answers),
    .job(job), .cluster(cluster), .worker(worker), .session(session_unused), .segment(segment),
    .lanes(lanes_14), .number(number_unused), .contributors(contributors), .weight(weight), .reward(reward)
);

wire ends = valid_2_reg && last_2_reg;
assign framing = ends && framing_reg;
assign too_long = ends && !framing_reg && long_reg;
assign refused = ends && !framing_reg && !long_reg
    && ((update_2_reg && !identified) || (answer_2_reg && !answers));

assign update = valid_2_reg && update_2_reg && (!beyond_2_reg || last_2_reg);
assign other = valid_2_reg && !update_2_reg && (!beyond_2_reg || last_2_reg);
assign data = data_2_reg;
assign keep = keep_2_reg;
assign last = last_2_reg;
assign good = !framing && !too_long && !refused;
assign flow = {job, cluster, segment};
assign lanes = {2'd0, lanes_14};
assign not_finite = not_finite_reg;
assign vast = large_reg;

`ifdef FORMAL
`include "olaf_ingress_props.v"
`endif

endmodule

`resetall
