// Frames wait in order. A frame can be read when its last beat is in, and is not dropped.
//
// The writer is never stopped: a frame for which there is no room is dropped as a whole. The source of the
// frames can therefore also serve others.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module frame_fifo #(
    // Bits of a beat.
    parameter DATA = 512,
    // Beats that it holds: a power of two.
    parameter DEPTH = 32,
    // 1: block RAM. 0: LUT RAM.
    parameter BLOCK = 0
) (
    input  wire              clk,
    input  wire              rst,

    // A beat comes in each cycle in which `write` is high. With its last beat a frame is taken, or with
    // `write_drop` forgotten.
    input  wire              write,
    input  wire [DATA-1:0]   write_data,
    input  wire [DATA/8-1:0] write_keep,
    input  wire              write_last,
    input  wire              write_drop,
    // High for a cycle, a cycle after the last beat: the frame was taken; there was no room.
    output wire              taken,
    output wire              no_room,

    output wire [DATA-1:0]   m_axis_tdata,
    output wire [DATA/8-1:0] m_axis_tkeep,
    output wire              m_axis_tvalid,
    input  wire              m_axis_tready,
    output wire              m_axis_tlast
);

localparam ADDRESS = $clog2(DEPTH);
localparam WIDTH = DATA + DATA/8 + 1;

generate
    if (DEPTH < 2 || DEPTH != 1 << ADDRESS) begin : g_illegal
        frame_fifo_needs_a_power_of_two illegal();
    end
endgenerate

// One bit more than an address: a full memory differs from an empty one.
reg [ADDRESS:0] write_reg = 0, frame_reg = 0, read_reg = 0;
reg             lost_reg = 0, taken_reg = 0, no_room_reg = 0;
reg             valid_reg = 0;

wire full = write_reg - read_reg == DEPTH[ADDRESS:0];
wire lost = lost_reg || full;
wire moves = !valid_reg || m_axis_tready;
wire reads = moves && read_reg != frame_reg;

ram #(.WIDTH(WIDTH), .DEPTH(DEPTH), .BLOCK(BLOCK)) memory (
    .clk(clk),
    .write(write && !lost), .write_address(write_reg[ADDRESS-1:0]),
    .write_data({write_last, write_keep, write_data}),
    .read(reads), .read_address(read_reg[ADDRESS-1:0]),
    .read_data({m_axis_tlast, m_axis_tkeep, m_axis_tdata})
);

assign m_axis_tvalid = valid_reg;
assign taken = taken_reg;
assign no_room = no_room_reg;

always @(posedge clk) begin
    taken_reg <= write && write_last && !write_drop && !lost;
    no_room_reg <= write && write_last && !write_drop && lost;
    if (write) begin
        lost_reg <= lost && !write_last;
        if (!lost) write_reg <= write_reg + 1'b1;
        if (write_last) begin
            if (write_drop || lost) write_reg <= frame_reg;
            else frame_reg <= write_reg + 1'b1;
        end
    end
    if (reads) read_reg <= read_reg + 1'b1;
    if (moves) valid_reg <= reads;
    if (rst) begin
        write_reg <= 0;
        frame_reg <= 0;
        read_reg <= 0;
        {lost_reg, valid_reg, taken_reg, no_room_reg} <= 4'd0;
    end
end

`ifdef FORMAL
`include "frame_fifo_props.v"
`endif

endmodule

`resetall
