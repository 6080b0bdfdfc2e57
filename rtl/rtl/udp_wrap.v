// Behind iSwitch's accelerator: sends a payload to each of its receivers, as a UDP datagram in IPv4 in an Ethernet frame.
// A payload is stored until its last beat, because its length stands in the headers before it. It leaves once for each
// receiver, lowest first. Addresses come from a table outside (`udp_receivers`).
//
// Headers: no IPv4 option, identification 0 and never fragmented (RFC 6864), 64 hops, ToS of the payload. The UDP checksum is
// 0: there is none, which IPv4 allows (RFC 768). Ethernet's own covers the frame. Frames are padded with zeros to 60 bytes.
//
// Each payload has one fate; from bit 0, the first that holds:
//
//   framing      a byte in the middle is not kept, or the last one of several beats keeps none
//   too_long     more than BEATS beats
//   no_receiver  no bit of the receivers is high
//   kept         none of these
//
// A receiver without an entry in the table gets nothing and is counted (`no_entry`).
//
// One beat a cycle leaves, also from one datagram to the next. A receiver without an entry costs a cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module udp_wrap #(
    // Bits of a beat: 256, 512, 1024..
    parameter DATA = 256,
    // Receivers; at least 2.
    parameter PORTS = 4,
    // Beats of the longest payload.
    parameter BEATS = 46,
    // Beats and payloads that wait: powers of two. At least BEATS beats.
    parameter DEPTH = 128,
    parameter FRAMES = 16,
    // 1: block RAM. 0: LUT RAM.
    parameter BLOCK = 0,
    // Bits of a receiver's number.
    parameter PORT = $clog2(PORTS)
) (
    input  wire               clk,
    input  wire               rst,

    // Payloads. tuser is {ToS, a bit for each receiver}, as it is in the last beat.
    input  wire [DATA-1:0]    s_axis_tdata,
    input  wire [DATA/8-1:0]  s_axis_tkeep,
    input  wire               s_axis_tvalid,
    output wire               s_axis_tready,
    input  wire               s_axis_tlast,
    input  wire [PORTS+7:0]   s_axis_tuser,

    // Frames. tuser is {the receiver's bit, bytes of the frame}.
    output wire [DATA-1:0]    m_axis_tdata,
    output wire [DATA/8-1:0]  m_axis_tkeep,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast,
    output wire [PORTS+15:0]  m_axis_tuser,

    // The sender: {MAC, IPv4 address, UDP port}.
    input  wire [95:0]        sender,
    // The table's entry of a receiver, in the same cycle.
    output wire [PORT-1:0]    lookup,
    input  wire               entry_valid,
    input  wire [95:0]        entry,

    // High for a cycle: the fates of a payload; a datagram begins to leave; a receiver had no entry.
    output wire [3:0]         fate,
    output wire               sent,
    output wire               no_entry
);

localparam BYTES = DATA / 8;
localparam BYTE = $clog2(BYTES);
localparam HEADER = 42;
// The payload begins in this beat, at this byte.
localparam FIRST = HEADER / BYTES;
localparam SHIFT = HEADER % BYTES;
localparam UPPER = BYTES - SHIFT;
localparam ADDRESS = $clog2(DEPTH);
localparam FRAME = $clog2(FRAMES);
// A frame has up to two beats more than its payload.
localparam BEAT = ADDRESS + 1;
localparam [ADDRESS:0] ALL = DEPTH[ADDRESS:0];
localparam [FRAME:0] ALL_FRAMES = FRAMES[FRAME:0];

generate
    if (DATA < 256 || DATA != 1 << BYTE + 3 || PORTS < 2 || PORT != $clog2(PORTS) || BEATS < 1
            || DEPTH < BEATS || 2*DEPTH < BEATS + 3 || DEPTH != 1 << ADDRESS || FRAMES < 2
            || FRAMES != 1 << FRAME || BEATS*BYTES > 65507 || DEPTH*BYTES > 32768) begin : g_illegal
        udp_wrap_holds_a_longest_payload illegal();
    end
endgenerate

// One bit more than an address: a full memory differs from an empty one. The payload that comes in begins at `frame_reg`, the
// one that leaves at `free_reg`.
reg [ADDRESS:0] write_reg = 0, frame_reg = 0, free_reg = 0;
reg [FRAME:0]   frame_write_reg = 0, frame_read_reg = 0;
reg [BEAT-1:0]  beats_reg = 0;
reg             framing_reg = 0, too_long_reg = 0;

// A beat that is too many needs no room.
wire fits = beats_reg != BEATS[BEAT-1:0];
assign s_axis_tready = (!fits || write_reg - free_reg != ALL)
    && frame_write_reg - frame_read_reg != ALL_FRAMES;
wire takes = s_axis_tvalid && s_axis_tready;
wire ends = takes && s_axis_tlast;
// Bytes that are kept come first. Only an empty payload has a beat without a byte.
wire dense = (s_axis_tlast ? (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == 0 : &s_axis_tkeep)
    && (s_axis_tkeep[0] || beats_reg == 0);
wire framing = framing_reg || !dense;
wire too_long = too_long_reg || !fits;
wire no_receiver = s_axis_tuser[PORTS-1:0] == 0;
assign fate[0] = ends && framing;
assign fate[1] = ends && !framing && too_long;
assign fate[2] = ends && !framing && !too_long && no_receiver;
assign fate[3] = ends && !framing && !too_long && !no_receiver;
wire kept = fate[3];

// Bytes that are not kept become zeros: they may be sent as padding.
reg [DATA-1:0] clean;
reg [15:0]     bytes;
integer i;
always @* begin
    bytes = {{16-BEAT{1'b0}}, beats_reg} << BYTE;
    for (i = 0; i < BYTES; i = i + 1) begin
        clean[8*i +: 8] = s_axis_tkeep[i] ? s_axis_tdata[8*i +: 8] : 8'd0;
        if (s_axis_tkeep[i]) bytes = ({{16-BEAT{1'b0}}, beats_reg} << BYTE) + i[15:0] + 16'd1;
    end
end

wire [ADDRESS:0] behind = write_reg + {{ADDRESS{1'b0}}, fits};

// Of each payload: beats, bytes, ToS, receivers.
localparam ABOUT = BEAT + 16 + 8 + PORTS;
reg [ABOUT-1:0] about_mem [0:FRAMES-1];
wire about_valid = frame_read_reg != frame_write_reg;
wire about_ready;
wire picked = about_valid && about_ready;

always @(posedge clk) begin
    if (takes) begin
        write_reg <= ends && !kept ? frame_reg : behind;
        if (kept) frame_reg <= behind;
        beats_reg <= ends ? {BEAT{1'b0}} : beats_reg + {{BEAT-1{1'b0}}, fits};
        framing_reg <= !ends && framing;
        too_long_reg <= !ends && too_long;
    end
    if (kept) about_mem[frame_write_reg[FRAME-1:0]] <= {beats_reg + 1'b1, bytes, s_axis_tuser};
    if (kept) frame_write_reg <= frame_write_reg + 1'b1;
    if (picked) frame_read_reg <= frame_read_reg + 1'b1;
    if (rst) begin
        write_reg <= 0;
        frame_reg <= 0;
        frame_write_reg <= 0;
        frame_read_reg <= 0;
        beats_reg <= 0;
        {framing_reg, too_long_reg} <= 2'b00;
    end
end

wire [BEAT-1:0]  about_beats, next_beats, next_end;
wire [15:0]      about_bytes, next_bytes;
wire [7:0]       about_tos;
wire [PORTS-1:0] about_receivers, next_receiver;
wire             next_valid, next_send, next_frees, done;
wire [8*HEADER-1:0] header;
assign {about_beats, about_bytes, about_tos, about_receivers} = about_mem[frame_read_reg[FRAME-1:0]];

udp_headers #(.PORTS(PORTS), .BEAT(BEAT), .BYTES(BYTES)) headers (
    .clk(clk), .rst(rst),
    .s_valid(about_valid), .s_ready(about_ready), .s_beats(about_beats), .s_bytes(about_bytes),
    .s_tos(about_tos), .s_receivers(about_receivers),
    .sender(sender), .lookup(lookup), .entry_valid(entry_valid), .entry(entry), .no_entry(no_entry),
    .m_valid(next_valid), .m_ready(done), .m_send(next_send), .m_frees(next_frees),
    .m_beats(next_beats), .m_bytes(next_bytes), .m_end(next_end), .m_receiver(next_receiver),
    .m_header(header)
);

reg [8*HEADER-1:0] head_reg;

// The number of the beat that is read; it and what belongs to it a cycle later; the output.
reg [BEAT-1:0]    place_reg = 0;
reg               read_valid_reg = 0, read_first_reg, read_payload_reg, read_last_reg;
reg [BYTES-1:0]   read_keep_reg;
reg [PORTS+15:0]  read_user_reg;
reg               valid_reg = 0, last_reg;
reg [DATA-1:0]    data_reg;
reg [BYTES-1:0]   keep_reg;
reg [PORTS+15:0]  user_reg;
reg [8*SHIFT-1:0] carry_reg;

wire moves = !valid_reg || m_axis_tready;
wire reads = moves && next_valid && next_send;
wire is_first = place_reg == 0;
wire is_last = place_reg == next_end;
assign done = moves && next_valid && (!next_send || is_last);
assign sent = reads && is_first;
wire [BEAT-1:0] payload_place = place_reg - FIRST[BEAT-1:0];
wire is_payload = (FIRST == 0 || !is_first) && payload_place < next_beats;
wire [ADDRESS-1:0] address = free_reg[ADDRESS-1:0] + payload_place[ADDRESS-1:0];
wire [BYTES-1:0] last_keep = ~({BYTES{1'b1}} << next_bytes[BYTE-1:0]);
wire is_whole = !is_last || next_bytes[BYTE-1:0] == 0;

wire [DATA-1:0] beat;
ram #(.WIDTH(DATA), .DEPTH(DEPTH), .BLOCK(BLOCK)) payloads (
    .clk(clk),
    .write(takes && fits), .write_address(write_reg[ADDRESS-1:0]), .write_data(clean),
    .read(reads && is_payload), .read_address(address), .read_data(beat)
);

// Bytes as they lie in a beat: the first one lowest.
wire [8*HEADER-1:0] head;
genvar b;
generate
    for (b = 0; b < HEADER; b = b + 1) begin : g_byte
        assign head[8*b +: 8] = head_reg[8*(HEADER-1-b) +: 8];
    end
endgenerate
wire [DATA-1:0] payload = read_payload_reg ? beat : {DATA{1'b0}};
wire [DATA-1:0] data;
wire [8*SHIFT-1:0] carry;
generate
    if (FIRST == 0) begin : g_one_beat
        assign data = {payload[8*UPPER-1:0], read_first_reg ? head : carry_reg};
        assign carry = payload[DATA-1:8*UPPER];
    end else begin : g_two_beats
        assign data = read_first_reg ? head[DATA-1:0] : {payload[8*UPPER-1:0], carry_reg};
        assign carry = read_first_reg ? head[8*HEADER-1:DATA] : payload[DATA-1:8*UPPER];
    end
endgenerate

assign m_axis_tdata = data_reg;
assign m_axis_tkeep = keep_reg;
assign m_axis_tvalid = valid_reg;
assign m_axis_tlast = last_reg;
assign m_axis_tuser = user_reg;

always @(posedge clk) begin
    if (moves) begin
        read_valid_reg <= reads;
        read_first_reg <= is_first;
        read_payload_reg <= is_payload;
        read_last_reg <= is_last;
        read_keep_reg <= is_whole ? {BYTES{1'b1}} : last_keep;
        valid_reg <= read_valid_reg;
        data_reg <= data;
        carry_reg <= carry;
        {last_reg, keep_reg, user_reg} <= {read_last_reg, read_keep_reg, read_user_reg};
    end
    if (sent) head_reg <= header;
    if (sent) read_user_reg <= {next_receiver, next_bytes};
    if (reads) place_reg <= is_last ? {BEAT{1'b0}} : place_reg + 1'b1;
    if (done && next_frees) free_reg <= free_reg + next_beats;
    if (rst) begin
        {read_valid_reg, valid_reg} <= 2'b00;
        place_reg <= 0;
        free_reg <= 0;
    end
end

`ifdef FORMAL
`include "udp_wrap_props.v"
`endif

endmodule

`resetall
