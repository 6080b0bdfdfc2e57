// A number, times a power of two or nothing, added to another number. In an FPGA a multiplier shifts: its DSP block, in
// UltraScale+ of 27 by 18 bits, takes the place of the LUTs of a shifter.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module scaled_sum #(
    // Bits of the number that is scaled, and of the sum.
    parameter NUMBER = 24,
    parameter SUM = 41,
    // Powers: 2^0 .. 2^(POWERS - 1).
    parameter POWERS = 17,
    // 1: a multiplier. 0: shifts, for proofs: what both do is the same (`formal/scaled_sum`).
    parameter MULTIPLY = 1
) (
    input  wire [NUMBER-1:0] number,
    // The power of two in two's complement, 2^i or -2^i; or 0.
    input  wire [POWERS:0]   scale,
    input  wire [SUM-1:0]    base,
    // Without an overflow above or below: the module that uses this knows that there is none.
    output wire [SUM-1:0]    sum
);
generate
    if (NUMBER + POWERS - 1 > SUM) begin : g_illegal
        scaled_sum_has_too_few_bits illegal();
    end
    if (MULTIPLY) begin : g_multiply
        multiply_add #(.A(NUMBER + 1), .B(POWERS + 1), .SUM(SUM)) block (
            .a({1'b0, number}), .b(scale), .addend(base), .sum(sum)
        );
    end else begin : g_shift
        // -2^i has ones from bit i on.
        reg [SUM-1:0] shifted;
        reg found;
        integer i;
        always @* begin
            shifted = 0;
            found = 1'b0;
            for (i = 0; i < POWERS; i = i + 1) begin
                if (scale[i] && !found) shifted = {{SUM-NUMBER{1'b0}}, number} << i;
                found = found || scale[i];
            end
        end
        assign sum = scale[POWERS] ? base - shifted : base + shifted;
    end
endgenerate

endmodule

`resetall
