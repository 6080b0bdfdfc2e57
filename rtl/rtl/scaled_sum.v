// A number, times a power of two or nothing, added to another number or subtracted from it.
//
// In an FPGA a multiplier shifts: its DSP block takes the place of the LUTs of a shifter and of an adder. A
// block of UltraScale+ has 27 by 18 bits and adds 48: it holds all of an f32 lane's.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module scaled_sum #(
    // Bits of the number that is scaled, and of the sum.
    parameter NUMBER = 24,
    parameter SUM = 41,
    // Powers: 2^0 .. 2^(POWERS - 1).
    parameter POWERS = 17,
    // 1: the scaled number can be subtracted.
    parameter SUBTRACTS = 1,
    // 1: a multiplier. 0: shifts, for proofs: what both do is the same (`formal/scaled_sum`).
    parameter MULTIPLY = 1
) (
    input  wire [NUMBER-1:0] number,
    // One bit at most is high: the power. With none, nothing is added.
    input  wire [POWERS-1:0] power,
    input  wire              subtract,
    input  wire [SUM-1:0]    base,
    // Without an overflow above or below: the module that uses this knows that there is none.
    output wire [SUM-1:0]    sum
);

generate
    if (NUMBER + POWERS - 1 > SUM) begin : g_illegal
        scaled_sum_has_too_few_bits illegal();
    end
endgenerate

generate
    if (MULTIPLY) begin : g_multiply
        wire signed [SUM-1:0] product;
        if (SUBTRACTS) begin : g_signed
            // -2^i has ones from bit i on.
            wire [POWERS:0] scale;
            genvar i;
            assign scale[0] = power[0];
            for (i = 1; i <= POWERS; i = i + 1) begin : g_bit
                if (i < POWERS) begin : g_inner
                    assign scale[i] = power[i] || (subtract && power[i-1:0] != 0);
                end else begin : g_sign
                    assign scale[i] = subtract && power != 0;
                end
            end
            assign product = $signed({1'b0, number}) * $signed(scale);
        end else begin : g_unsigned
            wire unused = subtract;
            assign product = $signed({1'b0, number}) * $signed({1'b0, power});
        end
        assign sum = base + product;
    end else begin : g_shift
        reg [SUM-1:0] shifted;
        integer i;
        always @* begin
            shifted = 0;
            for (i = 0; i < POWERS; i = i + 1)
                if (power[i]) shifted = shifted | ({{SUM-NUMBER{1'b0}}, number} << i);
        end
        assign sum = SUBTRACTS && subtract ? base - shifted : base + shifted;
    end
endgenerate

endmodule

`resetall
