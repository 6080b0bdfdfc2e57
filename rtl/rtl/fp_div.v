// Divides two floating-point numbers of one format: IEEE 754, rounding to nearest, ties to even.
//
// Every result has the bits of a software division (`a / b` of `f64` in Rust), subnormal operands and
// results included. A result that is not a number is always the same quiet NaN, as in `fp_add`.
//
// The unit works on one pair of operands at a time, with STEPS bits of the quotient a cycle. From the
// edge that takes the operands to the first edge that can take the quotient there are
// ceil((FRACTION + 2) / STEPS) + 3 cycles: 57 for f64 with one bit a cycle, 21 with three. A subnormal
// operand takes a cycle more for each place that its leading one has to move, so f64 takes at most 109
// (73) cycles. A subnormal quotient has fewer bits and is ready earlier. If an operand is a zero, an
// infinity or a NaN, there is one cycle. The next operands are taken a cycle after the quotient.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp_div #(
    // Bits of the exponent: 8 for f32, 11 for f64.
    parameter EXPONENT = 11,
    // Bits of the fraction, without the hidden one: 23 for f32, 52 for f64.
    parameter FRACTION = 52,
    // Bits of the quotient a cycle. Each has a subtraction of its own, one behind the other.
    parameter STEPS = 1
) (
    input  wire                         clk,
    input  wire                         rst,

    input  wire                         s_valid,
    output wire                         s_ready,
    input  wire [EXPONENT+FRACTION:0]   a,
    input  wire [EXPONENT+FRACTION:0]   b,

    output wire                         m_valid,
    input  wire                         m_ready,
    output wire [EXPONENT+FRACTION:0]   quotient
);

localparam SIGNIFICAND = FRACTION + 1;
// Bits of a quotient: a significand and the guard bit.
localparam BITS = SIGNIFICAND + 1;
localparam COUNT = $clog2(BITS + 1);
// Exponents with a sign: of a / b they reach from -(2^EXPONENT + FRACTION) to 2^EXPONENT + FRACTION.
localparam SIGNED = (EXPONENT > COUNT ? EXPONENT : COUNT) + 3;
localparam [EXPONENT-1:0] EXPONENT_MAX = {EXPONENT{1'b1}};
localparam [SIGNED-1:0] BIAS = (1 << (EXPONENT - 1)) - 1;
localparam [EXPONENT+FRACTION:0] NAN = {1'b0, EXPONENT_MAX, 1'b1, {FRACTION-1{1'b0}}};

// Illegal parameters stop the elaboration.
generate
    if (EXPONENT < 2 || FRACTION < 2 || STEPS < 1 || STEPS > BITS) begin : g_illegal
        fp_div_needs_two_bits_of_each_and_a_step illegal();
    end
endgenerate

localparam [2:0] IDLE = 0, NORMALISE = 1, DIVIDE = 2, ROUND = 3, DONE = 4;
reg [2:0] state_reg = IDLE;

// While the operands are normalised: their significands. Afterwards `remainder_reg` is what is left of a's,
// which is less than twice b's.
reg [SIGNIFICAND:0] remainder_reg;
reg [SIGNIFICAND-1:0] divisor_reg;
reg [BITS-1:0] quotient_reg;
// The exponent of a quotient of one or more and less than two.
reg signed [SIGNED-1:0] exponent_reg;
// Bits of the quotient that are still to come.
reg [COUNT-1:0] left_reg;
reg sign_reg;
reg [EXPONENT+FRACTION:0] result_reg;

assign s_ready = state_reg == IDLE;
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

// NORMALISE: the leading ones move to the topmost bits, a place a cycle. Then a's significand may have to
// move one place more: the quotient is not less than one.
wire a_moves = !remainder_reg[SIGNIFICAND-1];
wire b_moves = !divisor_reg[SIGNIFICAND-1];
wire below_one = remainder_reg[SIGNIFICAND-1:0] < divisor_reg;
wire signed [SIGNED-1:0] exponent = below_one ? exponent_reg - 1'b1 : exponent_reg;
// A subnormal quotient has fewer bits: the first ones stand for what a normal one has as leading zeros.
wire signed [SIGNED-1:0] fewer = exponent + (BITS[SIGNED-1:0] - 1'b1);

// DIVIDE: each step says whether the divisor fits into the remainder, and doubles the rest.
reg [SIGNIFICAND:0] remainder;
reg [BITS-1:0] digits;
reg fits;
integer step;
always @* begin
    remainder = remainder_reg;
    digits = quotient_reg;
    fits = 1'b0;
    for (step = 0; step < STEPS; step = step + 1)
        if (left_reg > step[COUNT-1:0]) begin
            fits = remainder >= {1'b0, divisor_reg};
            if (fits) remainder = remainder - {1'b0, divisor_reg};
            remainder = {remainder[SIGNIFICAND-1:0], 1'b0};
            digits = {digits[BITS-2:0], fits};
        end
end

// ROUND: the last bit is the guard bit; what is left of the remainder is the sticky bit. A carry out of
// the fraction counts the exponent up; out of the largest number it makes an infinity.
wire up = quotient_reg[0] && (remainder_reg != 0 || quotient_reg[1]);
wire [EXPONENT-1:0] field = exponent_reg > 0 ? exponent_reg[EXPONENT-1:0] : {EXPONENT{1'b0}};
wire [EXPONENT+FRACTION-1:0] rounded =
    {field, quotient_reg[FRACTION:1]} + {{EXPONENT+FRACTION-1{1'b0}}, up};
wire overflows = exponent_reg >= $signed({{SIGNED-EXPONENT{1'b0}}, EXPONENT_MAX});

always @(posedge clk) begin
    case (state_reg)
        IDLE: if (s_valid) begin
            state_reg <= known ? DONE : NORMALISE;
            remainder_reg <= {1'b0, a_is_normal, a[FRACTION-1:0]};
            divisor_reg <= {b_is_normal, b[FRACTION-1:0]};
            exponent_reg <= difference;
            sign_reg <= sign;
            result_reg <= nan ? NAN : a_is_special || b_is_zero
                ? {sign, EXPONENT_MAX, {FRACTION{1'b0}}} : {sign, {EXPONENT+FRACTION{1'b0}}};
        end
        NORMALISE: begin
            if (a_moves) remainder_reg <= {remainder_reg[SIGNIFICAND-1:0], 1'b0};
            if (b_moves) divisor_reg <= {divisor_reg[SIGNIFICAND-2:0], 1'b0};
            if (a_moves && !b_moves) exponent_reg <= exponent_reg - 1'b1;
            if (b_moves && !a_moves) exponent_reg <= exponent_reg + 1'b1;
            if (!a_moves && !b_moves) begin
                if (below_one) remainder_reg <= {remainder_reg[SIGNIFICAND-1:0], 1'b0};
                exponent_reg <= exponent;
                quotient_reg <= 0;
                left_reg <= exponent > 0 ? BITS[COUNT-1:0] : fewer > 0 ? fewer[COUNT-1:0] : {COUNT{1'b0}};
                state_reg <= DIVIDE;
            end
        end
        DIVIDE: begin
            remainder_reg <= remainder;
            quotient_reg <= digits;
            left_reg <= left_reg > STEPS[COUNT-1:0] ? left_reg - STEPS[COUNT-1:0] : {COUNT{1'b0}};
            if (left_reg <= STEPS[COUNT-1:0]) state_reg <= ROUND;
        end
        ROUND: begin
            result_reg <= {sign_reg, overflows ? {EXPONENT_MAX, {FRACTION{1'b0}}} : rounded};
            state_reg <= DONE;
        end
        default: if (m_ready) state_reg <= IDLE;
    endcase
    if (rst) state_reg <= IDLE;
end

`ifdef FORMAL
`include "fp_div_props.v"
`endif

endmodule

`resetall
