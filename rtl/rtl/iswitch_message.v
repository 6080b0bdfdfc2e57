// Reads a control message of iSwitch (Figure 5a, Table 2) from its first beat and its length. Bytes and limits are
// those of olaf-wire/src/iswitch: a message that the software refuses as malformed is not `well_formed` here.
// The word of a Join behind `operations` names the sender's program. Nobody here reads it: the hardware sums whoever joins.
// No state: one message in, its fields out, in the same cycle. The number that proves an address (030, `cookie.rs` of the
// engine) is the last word of a longer Join, and of a longer Ack of a Join. 0 is no such number: the software refuses it.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_message #(
    // Bits of the length of a datagram in bytes.
    parameter LENGTH = 12
) (
    // The first 32 bytes of the datagram, the first byte lowest.
    input  wire [255:0]       head,
    input  wire [LENGTH-1:0]  length,
    // The last word of the datagram is not 0: asked for lengths of 40 and 52 bytes alone.
    input  wire               has_number,
    output wire               well_formed,
    // One bit for each verb: bit 0 is Join (code 1), bit 7 is Ack (code 8).
    output wire [7:0]         verb,
    output wire [7:0]         generation,
    // Join and Leave.
    output wire [31:0]        job,
    output wire [31:0]        session,
    // Join.
    output wire               from_switch,
    output wire [31:0]        rank,
    output wire [10:0]        workers,
    output wire [10:0]        contributors,
    output wire [31:0]        packet_floats,
    output wire [31:0]        operations,
    // SetH.
    output wire [10:0]        h,
    // FBcast, Help and Ack.
    output wire [43:0]        index,
    // FBcast and Help: bit i stands for the packet `index + i`.
    output wire [63:0]        mask
);

// A number in network byte order.
function [31:0] long(input [31:0] bytes);
    long = {bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24]};
endfunction

localparam [43:0] MAX_INDEX = {44{1'b1}};
localparam [31:0] MAX_WORKERS = 2047;
// Reasons of a Halt have the codes 1 to 8 (`reduce::Reason`).
localparam [7:0] REASONS = 8;

wire [7:0] action = head[7:0];
wire [7:0] code = head[23:16];
wire [7:0] what = head[31:24];
wire [63:0] wide_index = {long(head[8*8 +: 32]), long(head[8*12 +: 32])};
wire [31:0] wide_workers = long(head[8*16 +: 32]);
wire [31:0] wide_contributors = long(head[8*20 +: 32]);
wire [31:0] wide_h = long(head[8*4 +: 32]);

assign generation = head[15:8];
assign job = long(head[8*4 +: 32]);
assign session = long(head[8*8 +: 32]);
assign rank = long(head[8*12 +: 32]);
assign workers = wide_workers[10:0];
assign contributors = wide_contributors[10:0];
assign packet_floats = long(head[8*24 +: 32]);
assign operations = long(head[8*28 +: 32]);
assign from_switch = what[0];
assign h = wide_h[10:0];
assign index = wide_index[43:0];
assign mask = {long(head[8*16 +: 32]), long(head[8*20 +: 32])};

genvar number;
generate
    for (number = 0; number < 8; number = number + 1) begin : g_verb
        assign verb[number] = length != 0 && action == number + 1;
    end
endgenerate

wire bare = code == 0 && what == 0;
wire join_fits = (length == 36 || (length == 40 && has_number)) && code == 3 && what <= 1
    && wide_workers != 0 && wide_workers <= MAX_WORKERS
    && wide_contributors != 0 && wide_contributors <= wide_workers && packet_floats != 0;
wire leave_fits = length == 12 && bare;
wire reset_fits = length == 4 && bare;
wire set_h_fits = length == 8 && bare && wide_h != 0 && wide_h <= MAX_WORKERS;
wire packets_fit = length == 24 && bare && wide_index <= {20'd0, MAX_INDEX} - 64'd64;
wire halt_fits = length == 16 && what == 0 && code >= 1 && code <= REASONS;
// An Ack of a Join has further fields, which stand in the second beat and matter to nobody here.
wire ack_is_long = what == 1 ? length == 48 || (length == 52 && has_number) : length == 16;
wire ack_fits = ack_is_long && what >= 1 && what <= 8
    && code >= 1 && code <= 8 && wide_index <= {20'd0, MAX_INDEX};

assign well_formed = |(verb & {ack_fits, halt_fits, packets_fit, packets_fit,
                               set_h_fits, reset_fits, leave_fits, join_fits});

`ifdef FORMAL
`include "iswitch_message_props.v"
`endif

endmodule

`resetall
