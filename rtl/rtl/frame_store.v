// Whole frames wait in order, with their last beats known to be good. The writer says of each frame at its end whether the
// frame is kept or forgotten. It has to wait where there is no room (`frame_fifo` would drop the frame).
//
// A frame longer than the memory waits for nothing: what does not fit is left out, and the frame is said to be too long.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module frame_store #(
    // Bits of a beat with all that belongs to it.
    parameter WIDTH = 289,
    // Beats that it holds: a power of two.
    parameter DEPTH = 128,
    // 1: block RAM. 0: LUT RAM.
    parameter BLOCK = 0
) (
    input  wire             clk,
    input  wire             rst,

    // A beat comes in each cycle in which `write` is high. It is not, unless `write_ready` is.
    input  wire             write,
    output wire             write_ready,
    input  wire [WIDTH-1:0] write_beat,
    // The frame ends, with the beat of this cycle or without one. With `keep` it can be read from now on, unless it is
    // too long. Otherwise it is forgotten.
    input  wire             finish,
    input  wire             keep,
    // The frame has more beats than the memory, the one of this cycle counted.
    output wire             too_long,

    output wire             m_valid,
    input  wire             m_ready,
    output wire [WIDTH-1:0] m_beat
);

localparam ADDRESS = $clog2(DEPTH);
localparam [ADDRESS:0] ALL = DEPTH[ADDRESS:0];

generate
    if (DEPTH < 2 || DEPTH != 1 << ADDRESS) begin : g_illegal
        frame_store_needs_a_power_of_two illegal();
    end
endgenerate

// One bit more than an address: a full memory differs from an empty one.
reg [ADDRESS:0] write_reg = 0, frame_reg = 0, read_reg = 0;
reg             lost_reg = 0, valid_reg = 0;

wire full = write_reg - read_reg == ALL;
// The memory holds this frame alone.
wire all_its_own = write_reg - frame_reg == ALL;
assign write_ready = !full || all_its_own;
wire stores = write && !full;
assign too_long = lost_reg || (write && all_its_own);
wire kept = finish && keep && !too_long;

wire moves = !valid_reg || m_ready;
wire reads = moves && read_reg != frame_reg;
assign m_valid = valid_reg;

ram #(.WIDTH(WIDTH), .DEPTH(DEPTH), .BLOCK(BLOCK)) memory (
    .clk(clk),
    .write(stores), .write_address(write_reg[ADDRESS-1:0]), .write_data(write_beat),
    .read(reads), .read_address(read_reg[ADDRESS-1:0]), .read_data(m_beat)
);

wire [ADDRESS:0] behind = write_reg + {{ADDRESS{1'b0}}, stores};

always @(posedge clk) begin
    write_reg <= finish && !kept ? frame_reg : behind;
    if (kept) frame_reg <= behind;
    lost_reg <= too_long && !finish;
    if (reads) read_reg <= read_reg + 1'b1;
    if (moves) valid_reg <= reads;
    if (rst) begin
        write_reg <= 0;
        frame_reg <= 0;
        read_reg <= 0;
        {lost_reg, valid_reg} <= 2'b00;
    end
end

`ifdef FORMAL
`include "frame_store_props.v"
`endif

endmodule

`resetall
