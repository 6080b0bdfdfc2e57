// iSwitch's Input Arbiter (§3.3, Figure 6). It takes packets from the Rx queues, and gives those with a ToS of iSwitch to
// the accelerator in place of the Packet Process module. What the accelerator sends comes in as one more Rx queue, the
// last one, and goes to Packet Process like regular traffic. No byte is changed.
//
// A packet is tagged if it is IPv4 without options and not a fragment, its protocol is UDP, and the DSCP in its ToS is
// 0x23 (data) or 0x2b (control), as in olaf-wire/src/iswitch/offsets.rs. Frames with a VLAN tag are regular traffic.
//
// Both outputs choose for themselves among the queues whose packet is for them. A full accelerator therefore stops no
// regular traffic but that behind a tagged packet of the same queue, and never its own results: that would be a deadlock.
//
// differs: the paper's arbiter takes queues "in a prioritized order" that it does not print. Here the queue that was
// served comes last, so that no queue waits for ever.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_input_arbiter #(
    // Rx queues of ports. One more is for the results of the accelerator.
    parameter PORTS = 4,
    // 32-bit lanes of a beat; at least 8: the tag stands in the first beat.
    parameter LANES = 8,
    // Bits of tuser, which passes with its beat; at least 1.
    parameter USER = 1,
    // All queues; bits of a queue's number.
    parameter QUEUES = PORTS + 1,
    parameter QUEUE = $clog2(QUEUES)
) (
    input  wire                       clk,
    input  wire                       rst,

    // The queues, queue 0 lowest; the results of the accelerator highest.
    input  wire [QUEUES*LANES*32-1:0] s_axis_tdata,
    input  wire [QUEUES*LANES*4-1:0]  s_axis_tkeep,
    input  wire [QUEUES-1:0]          s_axis_tvalid,
    output wire [QUEUES-1:0]          s_axis_tready,
    input  wire [QUEUES-1:0]          s_axis_tlast,
    input  wire [QUEUES*USER-1:0]     s_axis_tuser,

    // To Packet Process.
    output wire [LANES*32-1:0]        m_axis_tdata,
    output wire [LANES*4-1:0]         m_axis_tkeep,
    output wire                       m_axis_tvalid,
    input  wire                       m_axis_tready,
    output wire                       m_axis_tlast,
    output wire [USER-1:0]            m_axis_tuser,

    // To the accelerator, whole frames. tuser is {that of the beat, marked, control, queue}: the ECN mark and the class of
    // the ToS.
    output wire [LANES*32-1:0]        m_tagged_tdata,
    output wire [LANES*4-1:0]         m_tagged_tkeep,
    output wire                       m_tagged_tvalid,
    input  wire                       m_tagged_tready,
    output wire                       m_tagged_tlast,
    output wire [USER+QUEUE+1:0]      m_tagged_tuser
);

generate
    if (PORTS < 1 || LANES < 8 || USER < 1 || QUEUES != PORTS + 1) begin : g_illegal
        iswitch_input_arbiter_needs_the_tag_in_the_first_beat illegal();
    end
endgenerate

localparam [5:0] DATA = 6'h23;
localparam [5:0] CONTROL = 6'h2b;
localparam WIDTH = LANES*36 + 3 + USER;

// Of each queue: whether its next beat is the first of a frame; of the frame that has begun, what its ToS said.
reg [QUEUES-1:0]        inside_reg = 0;
reg [QUEUES-1:0]        tagged_reg, control_reg, marked_reg;
wire [QUEUES-1:0]       to_accelerator, regular_ready, tagged_ready;
wire [QUEUES*WIDTH-1:0] beats;

genvar queue;
generate
    for (queue = 0; queue < QUEUES; queue = queue + 1) begin : g_queue
        wire [LANES*32-1:0] data = s_axis_tdata[LANES*32*queue +: LANES*32];
        wire [LANES*4-1:0] keep = s_axis_tkeep[LANES*4*queue +: LANES*4];
        wire [7:0] tos = data[8*15 +: 8];
        wire ours = tos[7:2] == DATA || tos[7:2] == CONTROL;
        // The bytes of the protocol are there, and what stands before them fits.
        wire is_udp = keep[23] && data[8*12 +: 16] == 16'h0008 && data[8*14 +: 8] == 8'h45
            && (data[8*20 +: 8] & 8'h3f) == 0 && data[8*21 +: 8] == 0 && data[8*23 +: 8] == 8'd17;
        wire is_tagged = is_udp && ours && queue != PORTS;
        wire in = inside_reg[queue];
        wire control = in ? control_reg[queue] : tos[7:2] == CONTROL;
        wire marked = in ? marked_reg[queue] : &tos[1:0];
        assign to_accelerator[queue] = in ? tagged_reg[queue] : is_tagged;
        assign beats[WIDTH*queue +: WIDTH] = {
            marked, control, s_axis_tuser[USER*queue +: USER], data, keep, s_axis_tlast[queue]};

        always @(posedge clk) begin
            if (s_axis_tvalid[queue] && s_axis_tready[queue]) begin
                inside_reg[queue] <= !s_axis_tlast[queue];
                tagged_reg[queue] <= to_accelerator[queue];
                control_reg[queue] <= control;
                marked_reg[queue] <= marked;
            end
            if (rst) inside_reg[queue] <= 1'b0;
        end
    end
endgenerate

assign s_axis_tready = regular_ready | tagged_ready;

wire             regular_marked, regular_control, tagged_marked, tagged_control;
wire [QUEUE-1:0] regular_queue, tagged_queue;
wire [USER-1:0]  tagged_user;

iswitch_choice #(.QUEUES(QUEUES), .WIDTH(WIDTH)) regular_choice (
    .clk(clk), .rst(rst),
    .s_valid(s_axis_tvalid & ~to_accelerator), .s_ready(regular_ready), .s_beat(beats),
    .m_valid(m_axis_tvalid), .m_ready(m_axis_tready),
    .m_beat({regular_marked, regular_control, m_axis_tuser, m_axis_tdata, m_axis_tkeep,
             m_axis_tlast}),
    .m_queue(regular_queue)
);

iswitch_choice #(.QUEUES(QUEUES), .WIDTH(WIDTH)) tagged_choice (
    .clk(clk), .rst(rst),
    .s_valid(s_axis_tvalid & to_accelerator), .s_ready(tagged_ready), .s_beat(beats),
    .m_valid(m_tagged_tvalid), .m_ready(m_tagged_tready),
    .m_beat({tagged_marked, tagged_control, tagged_user, m_tagged_tdata, m_tagged_tkeep,
             m_tagged_tlast}),
    .m_queue(tagged_queue)
);
assign m_tagged_tuser = {tagged_user, tagged_marked, tagged_control, tagged_queue};

wire unused = &{1'b0, regular_marked, regular_control, regular_queue};

`ifdef FORMAL
`include "iswitch_input_arbiter_props.v"
`endif

endmodule

`resetall
