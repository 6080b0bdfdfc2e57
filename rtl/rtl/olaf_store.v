// Updates wait here whole before the queue decides about them: a value that is not finite rejects an update
// before every other rule, and it may be the last one (docs/queue.md, rule 1).
//
// The beats are in a ring, the headers in a short one of their own. The reader takes the header first, then
// reads the beats in any order, then gives them back. It may read them twice.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_store #(
    // Bits of a beat.
    parameter DATA = 512,
    // Beats of the longest update.
    parameter BEATS = 4,
    // Bits of a header.
    parameter HEADER = 8,
    // 1: block RAM. 0: LUT RAM.
    parameter BLOCK = 0,
    // Beats that may come after `room` went low.
    parameter MARGIN = 8,
    // Bits of an address: room for two of the longest updates, so that one can come while another is read, and
    // for the beats on the way in and out.
    parameter ADDRESS = $clog2(2*BEATS + 2*MARGIN)
) (
    input  wire               clk,
    input  wire               rst,

    // There is room for MARGIN beats and as many headers.
    output wire               room,
    // A beat comes in; with the last one, the header, or the update is forgotten.
    input  wire               write,
    input  wire [DATA-1:0]    write_data,
    input  wire               write_last,
    input  wire               write_drop,
    input  wire [HEADER-1:0]  write_header,

    // The header of the oldest update, which `take` removes.
    output wire               valid,
    output wire [HEADER-1:0]  header,
    input  wire               take,
    // Beats before `base` are given back.
    input  wire [ADDRESS-1:0] base,
    input  wire [ADDRESS-1:0] read_address,
    output wire [DATA-1:0]    read_data
);

localparam BEAT_ROOM = (1 << ADDRESS) - MARGIN;
localparam HEADERS = 32;
localparam HEADER_ROOM = HEADERS - MARGIN;

generate
    if (BEATS < 2 || MARGIN < 1 || MARGIN >= HEADERS || (1 << ADDRESS) < 2*BEATS + 2*MARGIN)
    begin : g_illegal
        olaf_store_has_too_few_beats illegal();
    end
endgenerate

reg [ADDRESS-1:0] write_reg = 0, frame_reg = 0;
reg               room_reg = 0;
wire [ADDRESS-1:0] beats = write_reg - base;

ram #(.WIDTH(DATA), .DEPTH(1 << ADDRESS), .BLOCK(BLOCK)) memory (
    .clk(clk),
    .write(write), .write_address(write_reg), .write_data(write_data),
    .read(1'b1), .read_address(read_address), .read_data(read_data)
);

// Headers: a ring in LUT RAM, and the oldest one in a register.
(* ram_style = "distributed" *) reg [HEADER-1:0] header_reg [0:HEADERS-1];
reg [4:0]        newest_reg = 0, oldest_reg = 0;
reg              valid_reg = 0;
reg [HEADER-1:0] first_reg;
wire [4:0] headers = newest_reg - oldest_reg;
wire push = write && write_last && !write_drop;
wire pop = (!valid_reg || take) && headers != 0;

assign room = room_reg;
assign valid = valid_reg;
assign header = first_reg;

always @(posedge clk) begin
    room_reg <= {1'b0, beats} < BEAT_ROOM[ADDRESS:0] && headers <= HEADER_ROOM[4:0];
    if (write) begin
        write_reg <= write_reg + 1'b1;
        if (write_last) begin
            if (write_drop) write_reg <= frame_reg;
            else frame_reg <= write_reg + 1'b1;
        end
    end
    if (push) begin
        header_reg[newest_reg] <= write_header;
        newest_reg <= newest_reg + 1'b1;
    end
    if (pop) begin
        first_reg <= header_reg[oldest_reg];
        oldest_reg <= oldest_reg + 1'b1;
    end
    valid_reg <= pop || (valid_reg && !take);
    if (rst) begin
        write_reg <= 0;
        frame_reg <= 0;
        newest_reg <= 0;
        oldest_reg <= 0;
        {room_reg, valid_reg} <= 2'd0;
    end
end

`ifdef FORMAL
`include "olaf_store_props.v"
`endif

endmodule

`resetall
