// The Separator in front of iSwitch's accelerator (§3.3): takes Ethernet, IPv4 and UDP off a frame and sends the UDP
// payload from its first byte. The payload ends where the UDP length says, so the padding of a short frame goes away.
//
// The payload of an empty datagram is one beat without a byte. A payload is stored until its frame has ended: only then
// is it known whether the frame is whole. `fate` says of each frame what became of it. From bit 0, the first that holds:
//
//   framing      a byte in the middle is not kept, or no byte of the last beat is
//   no_datagram  shorter than 42 bytes, not IPv4, a header that has not 20 bytes, not UDP
//   fragment     of an IPv4 datagram
//   checksum     that of the IPv4 header is wrong
//   length       that of IPv4 is not that of UDP and 20 more, that of UDP is below 8, or bytes are missing
//   too_long     the payload has more than DEPTH beats
//   passed       none of these
//
// The checksum of UDP is not looked at: Ethernet has one of its own, and senders may leave that of UDP out.
//
// One beat a cycle: a frame of 60 bytes takes two cycles at 256 bit and one at 512 bit.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module udp_strip #(
    // Bits of a beat: 256, 512, 1024..
    parameter DATA = 256,
    // Bits of tuser of the input, for example the number of a port.
    parameter USER = 2,
    // Beats of payload that wait; a power of two.
    parameter DEPTH = 128,
    // 1: block RAM. 0: LUT RAM.
    parameter BLOCK = 0
) (
    input  wire              clk,
    input  wire              rst,

    // Frames from their first byte, without a checksum behind. tuser is that of the last beat.
    input  wire [DATA-1:0]   s_axis_tdata,
    input  wire [DATA/8-1:0] s_axis_tkeep,
    input  wire              s_axis_tvalid,
    output wire              s_axis_tready,
    input  wire              s_axis_tlast,
    input  wire [USER-1:0]   s_axis_tuser,

    // Payloads. tuser is {source address, source port of UDP, ToS with ECN, tuser of the input}.
    output wire [DATA-1:0]   m_axis_tdata,
    output wire [DATA/8-1:0] m_axis_tkeep,
    output wire              m_axis_tvalid,
    input  wire              m_axis_tready,
    output wire              m_axis_tlast,
    output wire [USER+55:0]  m_axis_tuser,

    // High for a cycle when a frame has ended, one bit for each fate.
    output wire [6:0]        fate
);

localparam BYTES = DATA / 8;
localparam HEADER = 42;
// The payload begins in this beat, at this byte.
localparam FIRST = HEADER / BYTES;
localparam SHIFT = HEADER % BYTES;
localparam COUNT = $clog2(BYTES + 1);

generate
    if (DATA < 256 || DATA != 1 << $clog2(DATA) || USER < 1) begin : g_illegal
        udp_strip_needs_256_or_512_bit illegal();
    end
endgenerate

// A number in network byte order.
function [15:0] short(input [15:0] bytes);
    short = {bytes[7:0], bytes[15:8]};
endfunction

// Number of the next beat in its frame; 2 stands for all that follow.
reg [1:0] place_reg = 0;
wire      takes = s_axis_tvalid && s_axis_tready;
wire      is_first = place_reg == 0;
// The header ends in this beat.
wire      at_header = place_reg == FIRST[1:0];

wire [8*HEADER-1:0] head;
generate
    if (FIRST == 0) begin : g_one_beat
        assign head = s_axis_tdata[8*HEADER-1:0];
    end else begin : g_two_beats
        reg [DATA-1:0] first_reg;
        always @(posedge clk) if (takes && is_first) first_reg <= s_axis_tdata;
        assign head = {s_axis_tdata[8*SHIFT-1:0], first_reg};
    end
endgenerate

// The kept bytes are the first ones, and there is one.
wire dense = s_axis_tkeep[0]
    && (s_axis_tlast ? (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == 0 : &s_axis_tkeep);
reg [COUNT-1:0] kept;
integer i;
always @* begin
    kept = 0;
    for (i = 0; i < BYTES; i = i + 1)
        if (s_axis_tkeep[i]) kept = i[COUNT-1:0] + 1'b1;
end

// The sum of the header's ten words.
reg [19:0] sum;
integer w;
always @* begin
    sum = 0;
    for (w = 7; w < 17; w = w + 1) sum = sum + {4'd0, short(head[16*w +: 16])};
end
wire [15:0] ip_length = short(head[8*16 +: 16]);
wire [15:0] udp_length = short(head[8*38 +: 16]);

// What the header of the frame said.
reg         is_udp_reg, fragment_reg, lengths_agree_reg;
reg [19:0]  sum_reg;
reg [15:0]  udp_length_reg;
reg [55:0]  about_reg;
always @(posedge clk)
    if (takes && at_header) begin
        is_udp_reg <= short(head[8*12 +: 16]) == 16'h0800 && head[8*14 +: 8] == 8'h45
            && head[8*23 +: 8] == 8'd17;
        fragment_reg <= (head[8*20 +: 8] & 8'h3f) != 0 || head[8*21 +: 8] != 0;
        lengths_agree_reg <= {1'b0, ip_length} == {1'b0, udp_length} + 17'd20 && udp_length >= 8;
        sum_reg <= sum;
        udp_length_reg <= udp_length;
        about_reg <= {short(head[8*26 +: 16]), short(head[8*28 +: 16]), short(head[8*34 +: 16]),
                      head[8*15 +: 8]};
    end

// The beat before the one that comes: what of it begins a beat of payload, and all that is known with it.
reg                    hold_valid_reg = 0, hold_last_reg, hold_payload_reg, framing_reg;
reg [DATA-8*SHIFT-1:0] hold_reg;
reg [USER-1:0]         user_reg;
// Bytes of the frame up to this beat; those of a frame beyond all lengths are not counted on.
reg [17:0]             bytes_reg;
// Bytes of payload that have not left this register; there is one more beat of payload.
reg [15:0]             left_reg;
reg                    open_reg;

wire emits = hold_payload_reg && open_reg;
wire store_ready, too_long;
wire may_move = !emits || store_ready;
wire moves = hold_valid_reg && may_move && (hold_last_reg || s_axis_tvalid);
wire ends = moves && hold_last_reg;
assign s_axis_tready = !hold_valid_reg || may_move;

localparam [15:0] WHOLE = BYTES[15:0];
wire is_end = left_reg <= WHOLE;
wire [BYTES-1:0] keep = is_end ? ~({BYTES{1'b1}} << left_reg[COUNT-1:0]) : {BYTES{1'b1}};
wire [DATA-1:0] beat = {s_axis_tdata[8*SHIFT-1:0], hold_reg};
// Bytes behind the payload become zeros: what follows must not depend on them.
wire [DATA-1:0] clean;
genvar b;
generate
    for (b = 0; b < BYTES; b = b + 1) begin : g_byte
        assign clean[8*b +: 8] = keep[b] ? beat[8*b +: 8] : 8'd0;
    end
endgenerate
wire [17:0] bytes_before = is_first ? 18'd0 : bytes_reg;

always @(posedge clk) begin
    if (moves) hold_valid_reg <= 1'b0;
    if (moves && emits) begin
        left_reg <= left_reg - WHOLE;
        open_reg <= !is_end;
    end
    if (takes) begin
        place_reg <= s_axis_tlast ? 2'd0 : place_reg[1] ? place_reg : place_reg + 1'b1;
        hold_valid_reg <= 1'b1;
        hold_last_reg <= s_axis_tlast;
        hold_payload_reg <= FIRST == 0 || !is_first;
        hold_reg <= s_axis_tdata[DATA-1:8*SHIFT];
        framing_reg <= !dense || (!is_first && framing_reg);
        user_reg <= s_axis_tuser;
        if (!bytes_before[17]) bytes_reg <= bytes_before + {{18-COUNT{1'b0}}, kept};
        if (at_header) begin
            left_reg <= udp_length - 16'd8;
            open_reg <= 1'b1;
        end
    end
    if (rst) begin
        place_reg <= 0;
        hold_valid_reg <= 1'b0;
    end
end

// The verdict, with the last beat.
wire [16:0] folded = {1'b0, sum_reg[15:0]} + {13'd0, sum_reg[19:16]};
wire checksum_fits = folded[15:0] + {15'd0, folded[16]} == 16'hffff;
wire no_datagram = bytes_reg < HEADER[17:0] || !is_udp_reg;
wire length_fits = lengths_agree_reg && bytes_reg >= {2'd0, udp_length_reg} + 18'd34;
wire [5:0] mistakes = {
    too_long, !length_fits, !checksum_fits, fragment_reg, no_datagram, framing_reg};
wire good = mistakes[4:0] == 0;
wire [6:0] found = {1'b1, mistakes};
assign fate[0] = ends && found[0];
genvar kind;
generate
    for (kind = 1; kind < 7; kind = kind + 1) begin : g_fate
        assign fate[kind] = ends && found[kind] && found[kind-1:0] == 0;
    end
endgenerate

frame_store #(.WIDTH(USER + 57 + 9*BYTES), .DEPTH(DEPTH), .BLOCK(BLOCK)) payloads (
    .clk(clk), .rst(rst),
    .write(moves && emits), .write_ready(store_ready),
    .write_beat({about_reg, user_reg, is_end, keep, clean}),
    .finish(ends), .keep(good), .too_long(too_long),
    .m_valid(m_axis_tvalid), .m_ready(m_axis_tready),
    .m_beat({m_axis_tuser, m_axis_tlast, m_axis_tkeep, m_axis_tdata})
);

`ifdef FORMAL
`include "udp_strip_props.v"
`endif

endmodule

`resetall
