// Adds two f32 numbers: `fp_add` in the format of the lanes of an update.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp32_add #(
    // Which of the six steps have a register behind them: see `fp_add`.
    parameter [5:0] REGISTERS = 6'b111111
) (
    input  wire        clk,
    // The registers move only in cycles in which `enable` is high.
    input  wire        enable,
    // `sum` is `a`, whatever its bits say.
    input  wire        keep,
    input  wire [31:0] a,
    input  wire [31:0] b,
    // The sum of the operands that entered as many enabled edges before as REGISTERS has ones.
    output wire [31:0] sum
);

fp_add #(.EXPONENT(8), .FRACTION(23), .REGISTERS(REGISTERS)) add (
    .clk(clk), .enable(enable), .keep(keep), .a(a), .b(b), .sum(sum)
);

endmodule

`resetall
