// Makes the headers of the datagrams that `udp_wrap` sends: for each payload that waits, one for each of its receivers,
// lowest first. Two steps, so that a header a cycle can be ready: the receiver with its entry of the table, and the sum of
// the IPv4 header. No payload passes through this module.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module udp_headers #(
    // Receivers; at least 2.
    parameter PORTS = 4,
    // Bits of a number of beats.
    parameter BEAT = 8,
    // Bytes of a beat: a power of two, up to 1,024.
    parameter BYTES = 32,
    // Bits of a receiver's number.
    parameter PORT = $clog2(PORTS)
) (
    input  wire             clk,
    input  wire             rst,

    // The oldest payload whose receivers are not all picked: beats, bytes, ToS, a bit for each receiver, at least one.
    input  wire             s_valid,
    output wire             s_ready,
    input  wire [BEAT-1:0]  s_beats,
    input  wire [15:0]      s_bytes,
    input  wire [7:0]       s_tos,
    input  wire [PORTS-1:0] s_receivers,

    // The sender: {MAC, IPv4 address, UDP port}.
    input  wire [95:0]      sender,
    // The table's entry of a receiver, in the same cycle.
    output wire [PORT-1:0]  lookup,
    input  wire             entry_valid,
    input  wire [95:0]      entry,
    // High for a cycle: a receiver had no entry.
    output wire             no_entry,

    // The next datagram. Without `m_send` its receiver has no entry.
    output wire             m_valid,
    input  wire             m_ready,
    output wire             m_send,
    // The payload's last datagram.
    output wire             m_frees,
    output wire [BEAT-1:0]  m_beats,
    // Of the frame: its bytes, and the number of its last beat.
    output wire [15:0]      m_bytes,
    output wire [BEAT-1:0]  m_end,
    output wire [PORTS-1:0] m_receiver,
    // The first byte highest.
    output wire [335:0]     m_header
);

localparam BYTE = $clog2(BYTES);
localparam [15:0] HEADER = 42;
localparam [15:0] SHORTEST = 60;
localparam [15:0] VERSION = 16'h4500;
localparam [15:0] WHOLE = 16'h4000;
localparam [15:0] HOPS_AND_UDP = 16'h4011;

generate
    if (PORTS < 2 || PORT != $clog2(PORTS) || BYTES != 1 << BYTE || BYTE > 10 || BEAT + BYTE > 16) begin : g_illegal
        udp_headers_needs_two_receivers illegal();
    end
endgenerate

// Receivers of the payload that are not picked, once one was.
reg             picking_reg = 0;
reg [PORTS-1:0] rest_reg;
wire [PORTS-1:0] pending = picking_reg ? rest_reg : s_receivers;
wire [PORTS-1:0] after = pending & (pending - 1'b1);
reg [PORT-1:0]  lowest;
integer r;
always @* begin
    lowest = 0;
    for (r = PORTS - 1; r >= 0; r = r - 1) if (pending[r]) lowest = r[PORT-1:0];
end
assign lookup = lowest;

reg             pick_valid_reg = 0, pick_send_reg, pick_frees_reg;
reg [BEAT-1:0]  pick_beats_reg;
reg [15:0]      pick_bytes_reg;
reg [7:0]       pick_tos_reg;
reg [95:0]      pick_entry_reg;
reg [PORTS-1:0] pick_receiver_reg;
reg             valid_reg = 0, send_reg, frees_reg;
reg [BEAT-1:0]  beats_reg, end_reg;
reg [15:0]      bytes_reg, frame_reg;
reg [7:0]       tos_reg;
reg [95:0]      entry_reg, sender_reg;
reg [PORTS-1:0] receiver_reg;
reg [19:0]      sum_reg;

wire moves = !valid_reg || m_ready;
wire pick_moves = !pick_valid_reg || moves;
wire picks = pick_moves && s_valid;
assign s_ready = pick_moves && after == 0;
assign no_entry = picks && !entry_valid;

wire [15:0] frame = pick_bytes_reg < SHORTEST - HEADER ? SHORTEST : pick_bytes_reg + HEADER;
wire [15:0] last_byte = frame - 16'd1;
wire unused = &{1'b0, last_byte};

always @(posedge clk) begin
    if (pick_moves) begin
        pick_valid_reg <= s_valid;
        pick_send_reg <= entry_valid;
        pick_frees_reg <= after == 0;
        {pick_beats_reg, pick_bytes_reg, pick_tos_reg} <= {s_beats, s_bytes, s_tos};
        pick_entry_reg <= entry;
        pick_receiver_reg <= pending & ~after;
    end
    if (picks) begin
        picking_reg <= after != 0;
        rest_reg <= after;
    end
    if (moves) begin
        valid_reg <= pick_valid_reg;
        {send_reg, frees_reg} <= {pick_send_reg, pick_frees_reg};
        {beats_reg, bytes_reg, tos_reg} <= {pick_beats_reg, pick_bytes_reg, pick_tos_reg};
        {entry_reg, receiver_reg} <= {pick_entry_reg, pick_receiver_reg};
        // The sender's address may change before the datagram leaves; its checksum would be another one then.
        sender_reg <= sender;
        frame_reg <= frame;
        end_reg <= last_byte[BYTE +: BEAT];
        sum_reg <= {4'd0, VERSION} + {12'd0, pick_tos_reg} + {4'd0, pick_bytes_reg} + 20'd28
            + {4'd0, WHOLE} + {4'd0, HOPS_AND_UDP} + {4'd0, sender[47:32]} + {4'd0, sender[31:16]}
            + {4'd0, pick_entry_reg[47:32]} + {4'd0, pick_entry_reg[31:16]};
    end
    if (rst) {pick_valid_reg, valid_reg, picking_reg} <= 3'b000;
end

wire [16:0] folded = {1'b0, sum_reg[15:0]} + {13'd0, sum_reg[19:16]};
wire [15:0] checksum = ~(folded[15:0] + {15'd0, folded[16]});
wire [15:0] ip_length = bytes_reg + 16'd28;
wire [15:0] udp_length = bytes_reg + 16'd8;

assign m_valid = valid_reg;
assign {m_send, m_frees, m_beats, m_end} = {send_reg, frees_reg, beats_reg, end_reg};
assign {m_bytes, m_receiver} = {frame_reg, receiver_reg};
assign m_header = {
    entry_reg[95:48], sender_reg[95:48], 16'h0800,
    VERSION[15:8], tos_reg, ip_length, 16'd0, WHOLE, HOPS_AND_UDP, checksum,
    sender_reg[47:16], entry_reg[47:16],
    sender_reg[15:0], entry_reg[15:0], udp_length, 16'd0};

`ifdef FORMAL
`include "udp_headers_props.v"
`endif

endmodule

`resetall
