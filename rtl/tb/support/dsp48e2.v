// A DSP block of UltraScale+ as Yosys and `syn/multiply_add_xcup.v` use it: a multiplier of 27 by 18 bits with signs,
// and an adder behind it, without registers. Yosys has no model of the block. Any other use is an error here, so that
// neither a test nor a proof can pass on a wrong model.

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
    output [47:0] P, PCOUT
);
generate
    if (AREG + BREG + CREG + DREG + ADREG + MREG + PREG + ALUMODEREG + INMODEREG + OPMODEREG + CARRYINREG
            + CARRYINSELREG != 0 || A_INPUT != "DIRECT" || B_INPUT != "DIRECT" || USE_MULT != "MULTIPLY"
            || USE_SIMD != "ONE48" || AMULTSEL != "A" || BMULTSEL != "B") begin : g_illegal
        DSP48E2_is_not_a_multiplier_without_registers illegal();
    end
endgenerate

wire subtract = ALUMODE == 4'b0011;
// OPMODE: W, Z, Y, X. X and Y are the halves of the product.
wire alone = OPMODE == 9'b00_000_01_01;
wire with_c = OPMODE == 9'b00_011_01_01;
wire on_top = OPMODE == 9'b11_101_01_01;
wire known = INMODE == 5'd0 && (ALUMODE == 4'b0000 || subtract) && (alone || with_c || on_top)
    && CARRYINSEL == 3'd0 && CARRYIN == 1'b0;
wire signed [44:0] product = $signed(A[26:0]) * $signed(B);
wire [47:0] x_and_y = {{3{product[44]}}, product};
wire [47:0] w = on_top ? C : 48'd0;
wire [47:0] z = on_top ? {{17{PCIN[47]}}, PCIN[47:17]} : with_c ? C : 48'd0;
assign P = !known ? 48'bx : subtract ? z - (w + x_and_y) : z + w + x_and_y;
assign PCOUT = P;
`ifdef FORMAL
always @* assert (known);
`endif

endmodule
