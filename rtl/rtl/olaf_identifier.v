// Says of each frame that passes whether it is an update or an answer of Olaf, and whose.
//
// A frame is a datagram from its first byte; the offsets are those of olaf-wire/src/offsets.rs. `update` is
// high exactly for the frames that `Packet::new_checked` and `Update::parse` of olaf-wire read, `answer`
// exactly for those that `Answer::parse` reads. All other frames are neither: other kinds, frames that
// contradict themselves, frames that are shorter or longer than their header calls for.
//
// The module watches a stream and holds nothing up. How long a frame is, is known with its last beat; the
// verdict stands for the one cycle behind it, also when the next frame begins in that cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_identifier (
    input  wire         clk,
    input  wire         rst,

    input  wire [511:0] tdata,
    input  wire [63:0]  tkeep,
    // High when a beat passes: TVALID and TREADY of the stream.
    input  wire         passes,
    input  wire         tlast,

    // High for one cycle: a frame ended. The verdict, and the fields, stand in this cycle.
    output wire         ended,
    output wire         update,
    output wire         answer,
    // Of an update and of an answer.
    output wire [31:0]  job,
    output wire [31:0]  cluster,
    output wire [31:0]  worker,
    output wire [31:0]  session,
    output wire [31:0]  segment,
    output wire [13:0]  lanes,
    // The number of an update, or the one that an answer acknowledges.
    output wire [31:0]  number,
    // Of an update. Weight and reward are f64; the reward may be infinite or not a number.
    output wire [31:0]  contributors,
    output wire [63:0]  weight,
    output wire [63:0]  reward
);

localparam [31:0] MAGIC = {8'h46, 8'h41, 8'h4c, 8'h4f};  // "OLAF", its first byte lowest
localparam [7:0] VERSION = 3;
localparam [7:0] UPDATE = 1;
localparam [7:0] ACKNOWLEDGEMENT = 2;
localparam [7:0] MODEL = 3;
// `MAX_SEGMENT_LANES`: the lanes that fit the largest datagram.
localparam [31:0] MOST_LANES = 16348;
// Words of four bytes of the two headers.
localparam [14:0] UPDATE_WORDS = 96 / 4;
localparam [14:0] ANSWER_WORDS = 112 / 4;
// The most beats of a message; the number of a beat stops there.
localparam [10:0] MOST_BEATS = 1024;

// Numbers are in network byte order.
function [31:0] long(input [31:0] bytes);
    long = {bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24]};
endfunction

function [63:0] wide(input [63:0] bytes);
    wide = {long(bytes[31:0]), long(bytes[63:32])};
endfunction

// The fields of the beat, if it is the first one.
wire [7:0] kind = tdata[8*5 +: 8];
wire ours = tdata[31:0] == MAGIC && tdata[8*4 +: 8] == VERSION && tdata[8*6 +: 16] == 0;
wire model = kind == MODEL;
wire first_of_update = ours && kind == UPDATE
    && long(tdata[8*32 +: 32]) < long(tdata[8*36 +: 32])
    && wide(tdata[8*40 +: 64]) <= wide(tdata[8*48 +: 64])
    && long(tdata[8*56 +: 32]) <= long(tdata[8*60 +: 32]);
wire [31:0] answer_lanes = long(tdata[8*44 +: 32]);
wire first_of_answer = ours && (kind == ACKNOWLEDGEMENT || model)
    && long(tdata[8*28 +: 32]) < long(tdata[8*32 +: 32])
    && (answer_lanes != 0) == model
    && answer_lanes <= MOST_LANES && answer_lanes <= long(tdata[8*40 +: 32]);

// The fields of the beat, if it is the second one.
wire [31:0] update_lanes = long(tdata[8*(68-64) +: 32]);
wire [63:0] beat_weight = wide(tdata[8*(72-64) +: 64]);
// Finite and above zero.
wire weighs = !beat_weight[63] && beat_weight != 0 && !(&beat_weight[62:52]);
wire second_of_update = long(tdata[8*(64-64) +: 32]) != 0 && weighs
    && update_lanes != 0 && update_lanes <= MOST_LANES;
wire second_of_answer = (tdata[8*(96-64) +: 64] & tdata[8*(104-64) +: 64]) == 0;

reg [10:0] beat_reg = 0;
wire first = beat_reg == 0;
wire second = beat_reg == 1;

reg         ended_reg = 0, update_reg, answer_reg, gap_reg;
reg [10:0]  last_beat_reg;
reg [63:0]  last_keep_reg;
reg [31:0]  job_reg, cluster_reg, worker_reg, session_reg, segment_reg, number_reg;
reg [31:0]  contributors_reg;
reg [63:0]  weight_reg, reward_reg;
reg [13:0]  lanes_reg;
// Words of the message that its header calls for, less one.
reg [14:0]  words_reg;

always @(posedge clk) begin
    ended_reg <= passes && tlast;
    if (passes) begin
        beat_reg <= tlast ? 11'd0 : beat_reg == MOST_BEATS ? beat_reg : beat_reg + 1'b1;
        last_beat_reg <= beat_reg;
        last_keep_reg <= tkeep;
        // Only the last beat of a frame may have bytes that are not kept.
        gap_reg <= (!first && gap_reg) || (!tlast && !(&tkeep));
        if (first) begin
            update_reg <= first_of_update && !tlast;
            answer_reg <= first_of_answer && !tlast;
            {job_reg, cluster_reg} <= {long(tdata[8*8 +: 32]), long(tdata[8*12 +: 32])};
            {worker_reg, session_reg} <= {long(tdata[8*16 +: 32]), long(tdata[8*20 +: 32])};
            number_reg <= long(tdata[8*24 +: 32]);
            segment_reg <= long(kind == UPDATE ? tdata[8*32 +: 32] : tdata[8*28 +: 32]);
            lanes_reg <= answer_lanes[13:0];
            words_reg <= {1'b0, answer_lanes[13:0]} + ANSWER_WORDS - 1'b1;
        end
        if (second) begin
            update_reg <= update_reg && second_of_update;
            answer_reg <= answer_reg && second_of_answer;
            contributors_reg <= long(tdata[8*(64-64) +: 32]);
            {weight_reg, reward_reg} <= {beat_weight, wide(tdata[8*(80-64) +: 64])};
            if (update_reg) begin
                lanes_reg <= update_lanes[13:0];
                words_reg <= {1'b0, update_lanes[13:0]} + UPDATE_WORDS - 1'b1;
            end
        end
    end
    if (rst) begin
        beat_reg <= 0;
        ended_reg <= 1'b0;
    end
end

// The last beat is the one that the header calls for, with the bytes that it calls for.
wire [63:0] keep = {64{1'b1}} >> {4'd15 - words_reg[3:0], 2'd0};
wire whole = !gap_reg && last_beat_reg == words_reg[14:4] && last_keep_reg == keep;

assign ended = ended_reg;
assign update = ended_reg && update_reg && whole;
assign answer = ended_reg && answer_reg && whole;
assign {job, cluster, worker, session} = {job_reg, cluster_reg, worker_reg, session_reg};
assign {segment, lanes, number} = {segment_reg, lanes_reg, number_reg};
assign {contributors, weight, reward} = {contributors_reg, weight_reg, reward_reg};

`ifdef FORMAL
`include "olaf_identifier_props.v"
`endif

endmodule

`resetall
