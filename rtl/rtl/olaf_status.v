// Writes the status of a queue into every answer that passes (OLAF §5, "Reverse-path Signaling").
// Everything else passes untouched.
//
// A frame is a datagram from its first byte; the offsets are those of olaf-wire/src/offsets.rs. An answer
// has magic "OLAF", version 3, kind 2 or 3, no flags, and its whole header of 112 bytes. Its lanes are not
// looked at: whether an answer contradicts itself is known with its last beat, and `olaf_queue` drops it then.
//
// Of several queues on a path the answer tells the most crowded one, the one with the most active clusters
// for each slot, and the longest round (`QueueStatus::passing`). At equals it tells the queue nearer to the
// worker: this one.
//
// One beat a cycle; a beat leaves three cycles after it came.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_status #(
    // Bits of tuser, which passes with its beat; at least 1.
    parameter USER = 1
) (
    input  wire            clk,
    input  wire            rst,

    // The status of this queue: clusters heard of late, slots, used slots, and microseconds in which each
    // active cluster is served once (0: not known).
    input  wire [15:0]     active_clusters,
    input  wire [15:0]     slots,
    input  wire [15:0]     used,
    input  wire [31:0]     round_us,
    // High for a cycle with the last beat of each answer that was written into.
    output wire            stamped,

    input  wire [511:0]    s_axis_tdata,
    input  wire [63:0]     s_axis_tkeep,
    input  wire            s_axis_tvalid,
    output wire            s_axis_tready,
    input  wire            s_axis_tlast,
    input  wire [USER-1:0] s_axis_tuser,

    output wire [511:0]    m_axis_tdata,
    output wire [63:0]     m_axis_tkeep,
    output wire            m_axis_tvalid,
    input  wire            m_axis_tready,
    output wire            m_axis_tlast,
    output wire [USER-1:0] m_axis_tuser
);

generate
    if (USER < 1) begin : g_illegal
        olaf_status_needs_a_bit_of_tuser illegal();
    end
endgenerate

localparam [31:0] MAGIC = {8'h46, 8'h41, 8'h4c, 8'h4f};  // "OLAF", its first byte lowest
localparam [7:0] VERSION = 3;
localparam [7:0] ACKNOWLEDGEMENT = 2;
localparam [7:0] MODEL = 3;
// Fields of an answer, as bytes of its second beat. Numbers are in network byte order.
localparam ACTIVE_CLUSTERS = 72 - 64;
localparam SLOTS = 74 - 64;
localparam SWITCHES = 78 - 64;
localparam ROUND_US = 80 - 64;
localparam HEADER = 112 - 64;

function [15:0] word(input [15:0] bytes);
    word = {bytes[7:0], bytes[15:8]};
endfunction

function [31:0] long(input [31:0] bytes);
    long = {bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24]};
endfunction

// All three steps move together, when the last one is empty or its beat leaves.
reg valid_1_reg = 0, valid_2_reg = 0, valid_3_reg = 0;
wire moves = !valid_3_reg || m_axis_tready;
assign s_axis_tready = moves;

// 1: the beat comes in. `first` is high between frames; `answer` says that the frame's first beat was that
// of an answer.
reg            first_reg = 1, answer_reg = 0;
reg            answer_1_reg = 0, last_1_reg;
reg [511:0]    data_1_reg;
reg [63:0]     keep_1_reg;
reg [USER-1:0] user_1_reg;
reg [15:0]     active_1_reg, slots_1_reg, used_1_reg;
reg [31:0]     round_1_reg;

wire [7:0] kind = s_axis_tdata[8*5 +: 8];
wire is_answer = first_reg && !s_axis_tlast && s_axis_tdata[31:0] == MAGIC
    && s_axis_tdata[8*4 +: 8] == VERSION && (kind == ACKNOWLEDGEMENT || kind == MODEL)
    && s_axis_tdata[8*6 +: 16] == 0;
wire whole = s_axis_tkeep[HEADER-1];

// 2: how crowded the two queues are, each against the slots of the other. A queue above that says it has
// no slots counts as one with one.
reg            answer_2_reg = 0, last_2_reg;
reg [511:0]    data_2_reg;
reg [63:0]     keep_2_reg;
reg [USER-1:0] user_2_reg;
reg [15:0]     active_2_reg, slots_2_reg, used_2_reg;
reg [31:0]     round_2_reg, crowding_above_reg, crowding_here_reg;

wire [15:0] active_above = word(data_1_reg[8*ACTIVE_CLUSTERS +: 16]);
wire [15:0] slots_above = word(data_1_reg[8*SLOTS +: 16]);
wire [15:0] divisor_here = slots_1_reg == 0 ? 16'd1 : slots_1_reg;
wire [15:0] divisor_above = slots_above == 0 ? 16'd1 : slots_above;

// 3: the fields are written.
reg            answer_3_reg = 0, last_3_reg;
// An earlier beat of the frame was written into.
reg            before_reg = 0;
reg [511:0]    data_3_reg;
reg [63:0]     keep_3_reg;
reg [USER-1:0] user_3_reg;

wire [7:0] switches = data_2_reg[8*SWITCHES +: 8];
wire [31:0] round_above = long(data_2_reg[8*ROUND_US +: 32]);
wire above = switches != 0 && crowding_above_reg > crowding_here_reg;
wire [31:0] longest = round_above > round_2_reg ? round_above : round_2_reg;

reg [511:0] written;
always @* begin
    written = data_2_reg;
    if (answer_2_reg) begin
        if (!above)
            written[8*ACTIVE_CLUSTERS +: 48] =
                {word(used_2_reg), word(slots_2_reg), word(active_2_reg)};
        written[8*SWITCHES +: 8] = switches == 8'hff ? 8'hff : switches + 1'b1;
        written[8*ROUND_US +: 32] = long(longest);
    end
end

always @(posedge clk) begin
    if (moves) begin
        valid_1_reg <= s_axis_tvalid;
        {data_1_reg, keep_1_reg} <= {s_axis_tdata, s_axis_tkeep};
        {last_1_reg, user_1_reg} <= {s_axis_tlast, s_axis_tuser};
        {active_1_reg, slots_1_reg, used_1_reg, round_1_reg} <= {active_clusters, slots, used, round_us};
        answer_1_reg <= s_axis_tvalid && answer_reg && whole;
        if (s_axis_tvalid) begin
            first_reg <= s_axis_tlast;
            answer_reg <= is_answer;
        end

        valid_2_reg <= valid_1_reg;
        {data_2_reg, keep_2_reg} <= {data_1_reg, keep_1_reg};
        {answer_2_reg, last_2_reg, user_2_reg} <= {answer_1_reg, last_1_reg, user_1_reg};
        {active_2_reg, slots_2_reg, used_2_reg, round_2_reg} <=
            {active_1_reg, slots_1_reg, used_1_reg, round_1_reg};
        crowding_above_reg <= {16'd0, active_above} * {16'd0, divisor_here};
        crowding_here_reg <= {16'd0, active_1_reg} * {16'd0, divisor_above};

        valid_3_reg <= valid_2_reg;
        {data_3_reg, keep_3_reg} <= {written, keep_2_reg};
        {answer_3_reg, last_3_reg, user_3_reg} <= {answer_2_reg, last_2_reg, user_2_reg};
        if (valid_3_reg) before_reg <= !last_3_reg && (answer_3_reg || before_reg);
    end
    if (rst) begin
        {valid_1_reg, valid_2_reg, valid_3_reg} <= 3'd0;
        {answer_1_reg, answer_2_reg, answer_3_reg, answer_reg, before_reg} <= 5'd0;
        first_reg <= 1'b1;
    end
end

assign m_axis_tdata = data_3_reg;
assign m_axis_tkeep = keep_3_reg;
assign m_axis_tvalid = valid_3_reg;
assign m_axis_tlast = last_3_reg;
assign m_axis_tuser = user_3_reg;
assign stamped = (answer_3_reg || before_reg) && last_3_reg && valid_3_reg && m_axis_tready;

`ifdef FORMAL
`include "olaf_status_props.v"
`endif

endmodule

`resetall
