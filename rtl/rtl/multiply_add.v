// A product of two numbers with signs, plus a third number: what a DSP block does in one step. In synthesis for
// UltraScale+, `syn/multiply_add_xcup.v` takes the place of this file where Yosys does not find the block's adder.

`resetall
`timescale 1ns / 1ps
`default_nettype none
// A block multiplies by 0 to 0. In a simulator an unknown number times 0 would be unknown.
`ifdef SYNTHESIS
`define PRODUCT a * b
`else
`define PRODUCT b == 0 ? $signed({SUM{1'b0}}) : a * b
`endif

module multiply_add #(
    // Bits of the operands and of the sum.
    parameter A = 27,
    parameter B = 18,
    parameter SUM = 48
) (
    input  wire signed [A-1:0] a,
    input  wire signed [B-1:0] b,
    input  wire [SUM-1:0]      addend,
    // Without what overflows.
    output wire [SUM-1:0]      sum
);

wire signed [SUM-1:0] product = `PRODUCT;
// In this order: the carry chain takes the product as it is, and what makes `addend` joins its LUTs.
assign sum = product + addend;

endmodule

`resetall
