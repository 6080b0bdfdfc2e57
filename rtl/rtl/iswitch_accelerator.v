// iSwitch's in-switch accelerator (§3.3, Figure 7): it sums the packets of gradient vectors that have the same Seg, and
// sends each sum to all members. It decides as the software switch does (olaf-engine/src/switch/iswitch), for one job
// whose members are ports: the same packets leave, with the same bits.
//
// A datagram is a UDP payload from its first byte, in beats of 256 bit: the Seg and six floats, then eight floats a beat.
// tuser of the input is {confirmed, marked, control, port}: from the control plane, ECN mark, a control message or a data
// packet, ingress port. tuser of the output is {marked, control, receivers}, with a bit for each port. A control message leaves as it came, with its
// sender's bit, for the control plane, which answers it. With `proofs`, a Join is obeyed only if it is confirmed: the
// control plane has seen that it carries the number of its address, and sends it again.
//
// Counters (AXI4-Lite, see `axil_counters`), in this order: datagrams; their fates, each datagram in exactly one: taken
// into a sum, late, repeated, held, occupied, closed, too_early, impossible, wrong_size, mismatch, malformed,
// unknown_generation, not_a_member, join, leave, reset, set_h, fbcast, help, halt, ack. Then packets in sums that are
// complete, packets given up, results (each receiver), results sent again, sums without some of their members,
// generations begun and ended; Joins, Leaves and SetHs refused; other messages of an unknown generation, of no member.
//
// differs: NaN. The adders make one NaN, 0x7fc00000, where a processor keeps bits of an operand.
// differs: there is no switch above: sums do not go up a tree (iSwitch §3.4).

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_accelerator #(
    // Ports, each with one worker or one lower switch.
    parameter PORTS = 4,
    // Packets that a member may be ahead of its first missing result; a power of two.
    parameter SLOTS = 32,
    // Vectors that a member may send for one sum.
    parameter VECTORS = PORTS,
    // 32-bit lanes of a beat: 8 for 256 bit.
    parameter LANES = 8,
    // Beats of the longest datagram: 46 for 366 floats.
    parameter BEATS = 46,
    // Datagrams that wait for their decision; a power of two.
    parameter FRAMES = 16,
    // Address of the next block of counters, 0 if there is none.
    parameter [31:0] NEXT = 32'd0,
    // Bits of a port's number.
    parameter PORT = $clog2(PORTS)
) (
    input  wire                clk,
    input  wire                rst,
    // Number of the first generation.
    input  wire [7:0]          epoch,
    // Addresses of workers have to be proved.
    input  wire                proofs,

    input  wire [LANES*32-1:0] s_axis_tdata,
    input  wire [LANES*4-1:0]  s_axis_tkeep,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire                s_axis_tlast,
    input  wire [PORT+2:0]     s_axis_tuser,

    output wire [LANES*32-1:0] m_axis_tdata,
    output wire [LANES*4-1:0]  m_axis_tkeep,
    output wire                m_axis_tvalid,
    input  wire                m_axis_tready,
    output wire                m_axis_tlast,
    output wire [PORTS+1:0]    m_axis_tuser,

    input  wire [11:0]         s_axil_awaddr,
    input  wire                s_axil_awvalid,
    output wire                s_axil_awready,
    input  wire [31:0]         s_axil_wdata,
    input  wire [3:0]          s_axil_wstrb,
    input  wire                s_axil_wvalid,
    output wire                s_axil_wready,
    output wire [1:0]          s_axil_bresp,
    output wire                s_axil_bvalid,
    input  wire                s_axil_bready,
    input  wire [11:0]         s_axil_araddr,
    input  wire                s_axil_arvalid,
    output wire                s_axil_arready,
    output wire [31:0]         s_axil_rdata,
    output wire [1:0]          s_axil_rresp,
    output wire                s_axil_rvalid,
    input  wire                s_axil_rready
);

localparam LENGTH = $clog2(BEATS*LANES*4 + 1) < 7 ? 7 : $clog2(BEATS*LANES*4 + 1);
localparam BEAT = $clog2(BEATS + 1);
// The input and the output hold two of the longest datagrams each, and what passes while one is decided.
localparam DEPTH = 1 << $clog2(2*BEATS + 8);
localparam CELL = $clog2(2*SLOTS);
localparam PIECES = $clog2(PORTS+1);

wire                frame_valid, frame_ready, frame_too_long, frame_has_number;
wire [255:0]        frame_head;
wire [LENGTH-1:0]   frame_length, job_length;
wire [BEAT-1:0]     frame_beats, job_in;
wire [PORT+2:0]     frame_user;
wire                take;
wire [LANES*32-1:0] beat;

iswitch_frames #(
    .LANES(LANES), .BEATS(BEATS), .DEPTH(DEPTH), .FRAMES(FRAMES), .USER(PORT + 3),
    .LENGTH(LENGTH), .BEAT(BEAT)
) frames (
    .clk(clk), .rst(rst),
    .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep), .s_axis_tvalid(s_axis_tvalid),
    .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast), .s_axis_tuser(s_axis_tuser),
    .frame_valid(frame_valid), .frame_ready(frame_ready), .frame_head(frame_head),
    .frame_length(frame_length), .frame_beats(frame_beats), .frame_too_long(frame_too_long),
    .frame_has_number(frame_has_number),
    .frame_user(frame_user), .take(take), .beat(beat)
);

wire                job_valid, job_ready, job_store, job_add, job_send, job_from_cell;
wire                job_control, job_marked;
wire [CELL-1:0]     job_cell;
wire [63:0]         job_seg;
wire [PORTS-1:0]    job_to;
wire                decides, result_again, forced, began, ended;
wire                join_refused, leave_refused, h_refused;
wire                message_of_unknown_generation, message_of_no_member;
wire [20:0]         fate;
wire [PIECES-1:0]   summed, results;
wire [PIECES+CELL-1:0] given_up;

iswitch_control #(
    .PORTS(PORTS), .SLOTS(SLOTS), .VECTORS(VECTORS), .LENGTH(LENGTH), .BEAT(BEAT)
) control (
    .clk(clk), .rst(rst), .epoch(epoch), .proofs(proofs),
    .s_valid(frame_valid), .s_ready(frame_ready), .s_head(frame_head), .s_length(frame_length),
    .s_beats(frame_beats), .s_port(frame_user[PORT-1:0]), .s_control(frame_user[PORT]),
    .s_marked(frame_user[PORT+1]), .s_confirmed(frame_user[PORT+2]), .s_too_long(frame_too_long),
    .s_has_number(frame_has_number),
    .job_valid(job_valid), .job_ready(job_ready), .job_in(job_in), .job_store(job_store),
    .job_add(job_add), .job_send(job_send), .job_from_cell(job_from_cell), .job_cell(job_cell),
    .job_length(job_length), .job_control(job_control), .job_seg(job_seg), .job_to(job_to),
    .job_marked(job_marked),
    .decides(decides), .fate(fate), .summed(summed), .given_up(given_up), .results(results),
    .result_again(result_again), .forced(forced), .began(began), .ended(ended),
    .join_refused(join_refused), .leave_refused(leave_refused), .h_refused(h_refused),
    .message_of_unknown_generation(message_of_unknown_generation),
    .message_of_no_member(message_of_no_member)
);

wire                out_valid, out_last, out_left;
wire [LANES*32-1:0] out_data;
wire [LANES*4-1:0]  out_keep;
wire [PORTS+1:0]    out_user;

iswitch_sum #(
    .LANES(LANES), .BEATS(BEATS), .CELLS(2*SLOTS), .PORTS(PORTS), .ROOM(DEPTH),
    .LENGTH(LENGTH), .BEAT(BEAT)
) data (
    .clk(clk), .rst(rst),
    .job_valid(job_valid), .job_ready(job_ready), .job_in(job_in), .job_store(job_store),
    .job_add(job_add), .job_send(job_send), .job_from_cell(job_from_cell), .job_cell(job_cell),
    .job_length(job_length), .job_control(job_control), .job_seg(job_seg), .job_to(job_to),
    .job_marked(job_marked),
    .take(take), .beat(beat),
    .out_valid(out_valid), .out_data(out_data), .out_keep(out_keep), .out_last(out_last),
    .out_user(out_user), .out_left(out_left)
);

iswitch_output #(.WIDTH(LANES*36 + 1 + PORTS + 2), .DEPTH(DEPTH)) output_beats (
    .clk(clk), .rst(rst),
    .s_valid(out_valid), .s_beat({out_data, out_keep, out_last, out_user}), .left(out_left),
    .m_valid(m_axis_tvalid), .m_ready(m_axis_tready),
    .m_beat({m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser})
);

localparam AMOUNT = 16;
localparam COUNTERS = 34;

function [AMOUNT-1:0] one(input grows);
    one = {{AMOUNT-1{1'b0}}, grows};
endfunction

wire [21*AMOUNT-1:0] fates;
genvar kind;
generate
    for (kind = 0; kind < 21; kind = kind + 1) begin : g_fate
        assign fates[AMOUNT*kind +: AMOUNT] = one(fate[kind]);
    end
endgenerate

// A register, so that no decision has to be made and counted within one cycle.
reg [COUNTERS*AMOUNT-1:0] grow_reg = 0;
always @(posedge clk)
    if (rst) grow_reg <= 0;
    else grow_reg <= {
        one(message_of_no_member), one(message_of_unknown_generation), one(h_refused),
        one(leave_refused), one(join_refused), one(ended), one(began), one(forced),
        one(result_again), {{AMOUNT-PIECES{1'b0}}, results},
        {{AMOUNT-PIECES-CELL{1'b0}}, given_up}, {{AMOUNT-PIECES{1'b0}}, summed},
        fates, one(decides)};

// "iSWa", and the version of the list above.
axil_counters #(
    .COUNTERS(COUNTERS), .AMOUNT(AMOUNT), .ADDRESS(12), .TYPE(32'h69535761), .VERSION(32'd1),
    .NEXT(NEXT)
) counters (
    .clk(clk), .rst(rst),
    .grow(grow_reg),
    .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid),
    .s_axil_awready(s_axil_awready), .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb),
    .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp),
    .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready),
    .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
    .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
    .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready)
);

`ifdef FORMAL
`include "iswitch_accelerator_props.v"
`endif

endmodule

`resetall
