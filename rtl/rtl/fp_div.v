// Divides two floating-point numbers of one format: IEEE 754, rounding to nearest, ties to even.
//
// Every result has the bits of a software division (`a / b` of `f64` in Rust), subnormal operands and
// results included. A result that is not a number is always the same quiet NaN, as in `fp_add`.
//
// The unit works on one pair of operands at a time, with STEPS bits of the quotient a cycle. From the
// edge that takes the operands to the first edge that can take the quotient there are
// ceil((FRACTION + 3) / STEPS) + 2 cycles: 57 for f64 with one bit a cycle, 13 with five. Subnormal operands
// take a cycle more, and one for each place that a leading one has to move; a subnormal quotient takes
// a cycle for each place that it has to move. So f64 takes at most 163 cycles (119). If an operand is a zero,
// an infinity or a NaN, there is one cycle. The next operands are taken a cycle after the quotient, or at once if
// the division is abandoned.
//
// The division does not restore: a remainder below zero gets the divisor added in the next step, in place of
// subtracted. The signs of the remainders are the bits of the quotient, and a step is one addition.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp_div #(
    // Bits of the exponent: 8 for f32, 11 for f64.
    parameter EXPONENT = 11,
    // Bits of the fraction, without the hidden one: 23 for f32, 52 for f64.
    parameter FRACTION = 52,
    // Bits of the quotient a cycle. Each has an addition of its own, one behind the other.
    parameter STEPS = 1
) (
    input  wire                         clk,
    input  wire                         rst,

    input  wire                         s_valid,
    output wire                         s_ready,
    input  wire [EXPONENT+FRACTION:0]   a,
    input  wire [EXPONENT+FRACTION:0]   b,
    // The division on the way is abandoned, and its quotient too: operands can be taken in this cycle.
    input  wire                         abandon,

    // The quotient is there in the next cycle, if nothing is abandoned in this one.
    output wire                         m_soon,
    output wire                         m_valid,
    input  wire                         m_ready,
    output wire [EXPONENT+FRACTION:0]   quotient
);

localparam SIGNIFICAND = FRACTION + 1;
// Bits of a quotient from its ones on: a significand, the guard bit, and one more if it is below one. The
// last cycle may make more.
localparam CYCLES = (SIGNIFICAND + 2 + STEPS - 1) / STEPS;
localparam BITS = STEPS * CYCLES;
localparam COUNT = $clog2(CYCLES + 1);
// Exponents with a sign: of a / b they reach from -(2^EXPONENT + FRACTION) to 2^EXPONENT + FRACTION.
localparam PLACES = $clog2(SIGNIFICAND + 2);
localparam SIGNED = (EXPONENT > PLACES ? EXPONENT : PLACES) + 3;
localparam [EXPONENT-1:0] EXPONENT_MAX = {EXPONENT{1'b1}};
localparam [EXPONENT-1:0] ONE = 1;
localparam [EXPONENT-1:0] TWO = 2;
localparam [SIGNED-1:0] BIAS = (1 << (EXPONENT - 1)) - 1;
// A quotient of this exponent or less is below half of the smallest number.
localparam signed [SIGNED-1:0] VANISHES = -$signed(SIGNIFICAND[SIGNED-1:0]);
localparam [EXPONENT+FRACTION:0] NAN = {1'b0, EXPONENT_MAX, 1'b1, {FRACTION-1{1'b0}}};

// Illegal parameters stop the elaboration.
generate
    if (EXPONENT < 2 || FRACTION < 2 || STEPS < 1 || STEPS > FRACTION + 2) begin : g_illegal
        fp_div_needs_two_bits_of_each_and_a_step illegal();
    end
endgenerate

localparam [2:0] IDLE = 0, NORMALISE = 1, DIVIDE = 2, ROUND = 3, DONE = 4;
reg [2:0] state_reg = IDLE;

// Twice the remainder, with its sign; before the first step, a's significand. It is at least minus twice the
// divisor, and less than twice the divisor.
reg [SIGNIFICAND+1:0] remainder_reg;
reg [SIGNIFICAND-1:0] divisor_reg;
reg [BITS-1:0] quotient_reg;
// A one was shifted out of the quotient.
reg lost_reg;
// The exponent of a quotient of one or more and less than two.
reg signed [SIGNED-1:0] exponent_reg;
// Cycles that are still to come.
reg [COUNT-1:0] left_reg;
reg sign_reg;
reg [EXPONENT+FRACTION:0] result_reg;

assign s_ready = state_reg == IDLE || abandon;
assign m_valid = state_reg == DONE;
assign quotient = result_reg;

// IDLE: the parts of the operands. A subnormal number has the exponent of the smallest normal ones, and
// no hidden bit.
wire [EXPONENT-1:0] a_exponent = a[FRACTION +: EXPONENT];
wire [EXPONENT-1:0] b_exponent = b[FRACTION +: EXPONENT];
wire a_is_normal = a_exponent != 0;
wire b_is_normal = b_exponent != 0;
wire a_is_special = a_exponent == EXPONENT_MAX;
wire b_is_special = b_exponent == EXPONENT_MAX;
wire a_is_nan = a_is_special && a[FRACTION-1:0] != 0;
wire b_is_nan = b_is_special && b[FRACTION-1:0] != 0;
wire a_is_zero = a[EXPONENT+FRACTION-1:0] == 0;
wire b_is_zero = b[EXPONENT+FRACTION-1:0] == 0;
wire sign = a[EXPONENT+FRACTION] != b[EXPONENT+FRACTION];
wire nan = a_is_nan || b_is_nan || (a_is_special && b_is_special) || (a_is_zero && b_is_zero);
wire known = a_is_special || b_is_special || a_is_zero || b_is_zero;
wire [SIGNED-1:0] difference =
    {{SIGNED-EXPONENT{1'b0}}, a_is_normal ? a_exponent : {{EXPONENT-1{1'b0}}, 1'b1}}
    - {{SIGNED-EXPONENT{1'b0}}, b_is_normal ? b_exponent : {{EXPONENT-1{1'b0}}, 1'b1}} + BIAS;

// NORMALISE: the leading ones of subnormal operands move to the topmost bits, a place a cycle.
wire a_moves = !remainder_reg[SIGNIFICAND-1];
wire b_moves = !divisor_reg[SIGNIFICAND-1];

// DIVIDE: each step adds the divisor to the remainder or subtracts it, and doubles the rest. An odd bit behind
// both operands carries the one that a subtraction needs.
reg [SIGNIFICAND+1:0] remainder;
reg [SIGNIFICAND+2:0] rest;
reg [BITS-1:0] digits;
reg subtracts;
integer step;
always @* begin
    remainder = remainder_reg;
    digits = quotient_reg;
    for (step = 0; step < STEPS; step = step + 1) begin
        subtracts = !remainder[SIGNIFICAND+1];
        rest = {remainder, 1'b1}
            + {{2'b00, divisor_reg} ^ {SIGNIFICAND+2{subtracts}}, subtracts};
        remainder = {rest[SIGNIFICAND+1:1], 1'b0};
        digits = {digits[BITS-2:0], !rest[SIGNIFICAND+2]};
    end
end

// ROUND: first a subnormal quotient moves down, a place a cycle. Then the quotient has its leading one in its
// topmost bit, or behind it, or has the smallest exponent.
// Behind the significand comes the guard bit; the rest of the quotient and of the remainder is the sticky bit.
// An exact quotient has no more bits than a significand: the last steps found nothing to subtract, and
// left minus the divisor.
wire signed [SIGNED-1:0] one = 1;
wire subnormal = exponent_reg < one;
wire vanishes = exponent_reg <= VANISHES;
wire above_one = quotient_reg[BITS-1] || exponent_reg == one;
wire [BITS-1:0] leading = above_one ? quotient_reg : {quotient_reg[BITS-2:0], 1'b0};
wire [SIGNIFICAND+1:0] restored = remainder_reg + {1'b0, divisor_reg, 1'b0};
wire is_exact = restored == 0;
wire guard = leading[BITS-SIGNIFICAND-1];
wire sticky = lost_reg || leading[BITS-SIGNIFICAND-2:0] != 0 || !is_exact;
wire up = guard && (sticky || leading[BITS-SIGNIFICAND]);
// The leading one counts the exponent up. A carry out of the fraction does, too; out of the largest number it
// makes an infinity.
wire [EXPONENT-1:0] field = exponent_reg[EXPONENT-1:0] - (above_one ? ONE : TWO);
wire [EXPONENT+FRACTION-1:0] rounded = {field, {FRACTION{1'b0}}}
    + {{EXPONENT-1{1'b0}}, leading[BITS-1 -: SIGNIFICAND]} + {{EXPONENT+FRACTION-1{1'b0}}, up};
wire signed [SIGNED-1:0] largest = {{SIGNED-EXPONENT{1'b0}}, EXPONENT_MAX};
wire overflows = exponent_reg > largest || (exponent_reg == largest && above_one);
assign m_soon = state_reg == ROUND && !subnormal;

always @(posedge clk) begin
    case (state_reg)
        IDLE: begin end
        NORMALISE: begin
            if (a_moves) remainder_reg <= {remainder_reg[SIGNIFICAND:0], 1'b0};
            if (b_moves) divisor_reg <= {divisor_reg[SIGNIFICAND-2:0], 1'b0};
            if (a_moves && !b_moves) exponent_reg <= exponent_reg - 1'b1;
            if (b_moves && !a_moves) exponent_reg <= exponent_reg + 1'b1;
            if (!a_moves && !b_moves) state_reg <= DIVIDE;
        end
        DIVIDE: begin
            remainder_reg <= remainder;
            quotient_reg <= digits;
            left_reg <= left_reg - 1'b1;
            if (left_reg == 1) state_reg <= ROUND;
        end
        ROUND: if (subnormal) begin
            quotient_reg <= vanishes ? {BITS{1'b0}} : {1'b0, quotient_reg[BITS-1:1]};
            exponent_reg <= vanishes ? one : exponent_reg + one;
            lost_reg <= lost_reg || quotient_reg[0];
        end else begin
            result_reg <= {sign_reg, overflows ? {EXPONENT_MAX, {FRACTION{1'b0}}} : rounded};
            state_reg <= DONE;
        end
        default: if (m_ready) state_reg <= IDLE;
    endcase
    if (abandon) state_reg <= IDLE;
    if (s_valid && s_ready) begin
        state_reg <= known ? DONE : a_is_normal && b_is_normal ? DIVIDE : NORMALISE;
        remainder_reg <= {2'b00, a_is_normal, a[FRACTION-1:0]};
        divisor_reg <= {b_is_normal, b[FRACTION-1:0]};
        exponent_reg <= difference;
        lost_reg <= 1'b0;
        left_reg <= CYCLES[COUNT-1:0];
        sign_reg <= sign;
        result_reg <= nan ? NAN : a_is_special || b_is_zero
            ? {sign, EXPONENT_MAX, {FRACTION{1'b0}}} : {sign, {EXPONENT+FRACTION{1'b0}}};
    end
    if (rst) state_reg <= IDLE;
end

`ifdef FORMAL
`include "fp_div_props.v"
`endif

endmodule

`resetall
