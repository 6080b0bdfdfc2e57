// The reward gate (OLAF §3; docs/queue.md, rules 5 and 6): is the reward of an arrival above the mean reward of
// the entry that it meets, or below, by more than the threshold?
//
// The answer takes three cycles, and more if the entry was merged: its mean is a division (`olaf_mean`). The
// difference is rounded once, as in Rust; `a - b` and `b - a` differ in their sign alone.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_gate #(
    // Slots, and bits of a slot's number.
    parameter SLOTS = 8,
    parameter SLOT = $clog2(SLOTS)
) (
    input  wire            clk,
    input  wire            rst,

    // The gate is on; its threshold, f64.
    input  wire            gate,
    input  wire [63:0]     threshold,

    // The arrival: its reward, the slot of the entry that it meets, whether that entry was merged. With `store`
    // the arrival becomes the entry of the slot.
    input  wire            store,
    input  wire [SLOT-1:0] slot,
    input  wire [63:0]     reward,
    input  wire            merged,

    // Asks for the comparison, until `compared`. The answer holds until the arrival is `taken`.
    input  wire            compare,
    input  wire            taken,
    output wire            compared,
    output wire            better,
    output wire            worse,

    // Asks for the mean of an entry.
    output wire            look,
    output wire [SLOT-1:0] look_slot,
    input  wire            known,
    input  wire [63:0]     mean
);

localparam [5:0] REGISTERS = 6'b100100;
localparam [10:0] SPECIAL = 11'h7ff;

// a > b; false if one is not a number.
function greater(input [63:0] a, input [63:0] b);
    reg nan;
    begin
        nan = (a[62:52] == SPECIAL && a[51:0] != 0) || (b[62:52] == SPECIAL && b[51:0] != 0);
        greater = !nan && (
            a[63] != b[63] ? b[63] && (a[62:0] != 0 || b[62:0] != 0)
            : a[63] ? a[62:0] < b[62:0] : a[62:0] > b[62:0]);
    end
endfunction

// Rewards of the entries, as they came.
(* ram_style = "distributed" *) reg [63:0] reward_reg [0:SLOTS-1];

// The operands are there; the first and the second step of the difference; the answer.
reg        given_reg = 0, halfway_reg = 0, there_reg = 0, compared_reg = 0;
reg        better_reg, worse_reg;
reg            look_reg = 0;
reg [SLOT-1:0] look_slot_reg;
reg [63:0] entry_reg, arrival_reg;
wire [63:0] difference;
wire busy = given_reg || halfway_reg || there_reg || compared_reg;
wire starts = compare && gate && !busy && (!merged || (look_reg && known));

fp_add #(.EXPONENT(11), .FRACTION(52), .REGISTERS(REGISTERS)) subtract (
    .clk(clk), .enable(1'b1), .keep(1'b0), .a(arrival_reg), .b({!entry_reg[63], entry_reg[62:0]}), .sum(difference)
);

assign look = look_reg;
assign look_slot = look_slot_reg;
assign compared = !gate || compared_reg;
assign better = gate && better_reg;
assign worse = gate && worse_reg;

always @(posedge clk) begin
    if (store) reward_reg[slot] <= reward;
    look_reg <= compare && gate && merged && !busy && !starts;
    look_slot_reg <= slot;
    given_reg <= starts;
    {halfway_reg, there_reg} <= {given_reg, halfway_reg};
    if (starts) {entry_reg, arrival_reg} <= {merged ? mean : reward_reg[slot], reward};
    if (there_reg) begin
        compared_reg <= 1'b1;
        better_reg <= greater(difference, threshold);
        worse_reg <= greater({!difference[63], difference[62:0]}, threshold);
    end
    if (taken || rst) {given_reg, halfway_reg, there_reg, compared_reg, look_reg} <= 5'd0;
end

`ifdef FORMAL
`include "olaf_gate_props.v"
`endif

endmodule

`resetall
