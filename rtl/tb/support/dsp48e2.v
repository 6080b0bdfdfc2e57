// A DSP block of UltraScale+ as Yosys uses it: a multiplier of 27 by 18 bits with signs, without registers. Yosys
// has no model of the block. Any other use is an error here, so that a test cannot pass on a wrong model.

`timescale 1ns / 1ps

module DSP48E2 #(
    parameter integer ACASCREG = 1, ADREG = 1, ALUMODEREG = 1, AREG = 1, BCASCREG = 1, BREG = 1, CARRYINREG = 1,
    parameter integer CARRYINSELREG = 1, CREG = 1, DREG = 1, INMODEREG = 1, MREG = 1, OPMODEREG = 1, PREG = 1,
    parameter A_INPUT = "DIRECT", B_INPUT = "DIRECT", USE_MULT = "MULTIPLY", USE_SIMD = "ONE48",
    parameter AMULTSEL = "A", BMULTSEL = "B"
) (
    input  [29:0] A, ACIN,
    input  [17:0] B, BCIN,
    input  [47:0] C, PCIN,
    input  [26:0] D,
    input  [4:0]  INMODE,
    input  [3:0]  ALUMODE,
    input  [8:0]  OPMODE,
    input  [2:0]  CARRYINSEL,
    input         CARRYIN,
    output [47:0] P
);

initial if (AREG + BREG + CREG + DREG + ADREG + MREG + PREG + ALUMODEREG + INMODEREG + OPMODEREG + CARRYINREG
        + CARRYINSELREG != 0 || A_INPUT != "DIRECT" || B_INPUT != "DIRECT" || USE_MULT != "MULTIPLY"
        || USE_SIMD != "ONE48" || AMULTSEL != "A" || BMULTSEL != "B") begin
    $display("DSP48E2: not a multiplier without registers");
    $fatal;
end

wire plain = INMODE === 5'd0 && ALUMODE === 4'd0 && OPMODE === 9'b000000101 && CARRYIN === 1'b0;
wire signed [44:0] product = $signed(A[26:0]) * $signed(B);
assign P = plain ? {{3{product[44]}}, product} : 48'bx;

endmodule
