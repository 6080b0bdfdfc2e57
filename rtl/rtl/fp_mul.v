// Multiplies two floating-point numbers of one format: IEEE 754, rounding to nearest, ties to even.
//
// Every result has the bits of a software multiplication (`a * b` of `f64` in Rust), subnormal operands
// and results included. A result that is not a number is always the same quiet NaN, as in `fp_add`.
//
// One pair of operands enters a cycle. Their product is at `product` after as many enabled clock edges
// as REGISTERS has ones. There is no reset and no valid bit: the module that uses the multiplier knows
// which cycles count.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp_mul #(
    // Bits of the exponent: 8 for f32, 11 for f64.
    parameter EXPONENT = 11,
    // Bits of the fraction, without the hidden one: 23 for f32, 52 for f64.
    parameter FRACTION = 52,
    // Bit i: a register stands behind step i + 1. All six give the shortest paths.
    parameter [5:0] REGISTERS = 6'b111111
) (
    input  wire                         clk,
    // The registers move only in cycles in which `enable` is high.
    input  wire                         enable,
    input  wire [EXPONENT+FRACTION:0]   a,
    input  wire [EXPONENT+FRACTION:0]   b,
    output wire [EXPONENT+FRACTION:0]   product
);

// A significand has its hidden bit. The exact product of two has twice as many bits.
localparam SIGNIFICAND = FRACTION + 1;
localparam EXACT = 2*SIGNIFICAND;
// The lower and the upper part of b's significand, which are multiplied side by side.
localparam LOWER = SIGNIFICAND / 2;
localparam UPPER = SIGNIFICAND - LOWER;
// The exact product starts so far below its place that not even its leading one is the guard bit.
localparam BELOW = SIGNIFICAND + 2;
localparam WIDE = BELOW + EXACT;
// Bits that hold a shift of 0 .. WIDE.
localparam SHIFT = $clog2(WIDE + 1);
// Bits of exponents with a sign, and of shifts with a sign.
localparam SIGNED = (EXPONENT > SHIFT ? EXPONENT : SHIFT) + 2;
localparam [EXPONENT-1:0] EXPONENT_MAX = {EXPONENT{1'b1}};
localparam [SIGNED-1:0] BIAS = (1 << (EXPONENT - 1)) - 1;

// Illegal parameters stop the elaboration.
generate
    if (EXPONENT < 2 || FRACTION < 2) begin : g_illegal
        fp_mul_needs_two_bits_of_each illegal();
    end
endgenerate

// 1: the parts of the operands. A subnormal number has the exponent of the smallest normal ones, and
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
// The exponent that the product has if the topmost bit of the exact product is its leading one.
wire [SIGNED-1:0] places = {{SIGNED-EXPONENT{1'b0}}, a_is_normal ? a_exponent : {{EXPONENT-1{1'b0}}, 1'b1}}
    + {{SIGNED-EXPONENT{1'b0}}, b_is_normal ? b_exponent : {{EXPONENT-1{1'b0}}, 1'b1}} - BIAS + 1'b1;

wire nan_1, infinite_1, sign_1;
wire [SIGNED-1:0] places_1;
wire [SIGNIFICAND-1:0] a_1, b_1;

pipe #(.WIDTH(3 + SIGNED + 2*SIGNIFICAND), .REGISTERED(REGISTERS[0])) step_1 (
    .clk(clk), .enable(enable),
    .in({
        a_is_nan || b_is_nan || (a_is_special && b_is_zero) || (a_is_zero && b_is_special),
        a_is_special || b_is_special,
        a[EXPONENT+FRACTION] != b[EXPONENT+FRACTION],
        places,
        {a_is_normal, a[FRACTION-1:0]},
        {b_is_normal, b[FRACTION-1:0]}
    }),
    .out({nan_1, infinite_1, sign_1, places_1, a_1, b_1})
);

// 2: the products with both parts of b's significand.
wire nan_2, infinite_2, sign_2;
wire [SIGNED-1:0] places_2;
wire [SIGNIFICAND+LOWER-1:0] lower_2;
wire [SIGNIFICAND+UPPER-1:0] upper_2;

pipe #(.WIDTH(3 + SIGNED + EXACT + SIGNIFICAND), .REGISTERED(REGISTERS[1])) step_2 (
    .clk(clk), .enable(enable),
    .in({
        nan_1, infinite_1, sign_1, places_1,
        {{LOWER{1'b0}}, a_1} * {{SIGNIFICAND{1'b0}}, b_1[LOWER-1:0]},
        {{UPPER{1'b0}}, a_1} * {{SIGNIFICAND{1'b0}}, b_1[SIGNIFICAND-1:LOWER]}
    }),
    .out({nan_2, infinite_2, sign_2, places_2, lower_2, upper_2})
);

// 3: their sum is the exact product.
wire nan_3, infinite_3, sign_3;
wire [SIGNED-1:0] places_3;
wire [EXACT-1:0] exact_3;

pipe #(.WIDTH(3 + SIGNED + EXACT), .REGISTERED(REGISTERS[2])) step_3 (
    .clk(clk), .enable(enable),
    .in({
        nan_2, infinite_2, sign_2, places_2,
        {upper_2, {LOWER{1'b0}}} + {{UPPER{1'b0}}, lower_2}
    }),
    .out({nan_3, infinite_3, sign_3, places_3, exact_3})
);

// 4: how far the leading one is from the topmost bit, and how far the product moves up. Of a number of
// exponent e, the leading one can move up by e - 1 places; if that is less than it should, the product
// is subnormal.
reg [SHIFT-1:0] zeros;
integer i;
always @* begin
    zeros = EXACT[SHIFT-1:0];
    for (i = 0; i < EXACT; i = i + 1)
        if (exact_3[i]) zeros = EXACT[SHIFT-1:0] - 1'b1 - i[SHIFT-1:0];
end

wire signed [SIGNED-1:0] above = places_3 - {{SIGNED-SHIFT{1'b0}}, zeros};
wire normal = above > 0 && exact_3 != 0;
wire signed [SIGNED-1:0] to_subnormal = places_3 - 1'b1 + BELOW[SIGNED-1:0];

wire nan_4, infinite_4, sign_4;
wire [EXPONENT-1:0] exponent_4;
wire [SHIFT-1:0] shift_4;
wire [EXACT-1:0] exact_4;

pipe #(.WIDTH(3 + EXPONENT + SHIFT + EXACT), .REGISTERED(REGISTERS[3])) step_4 (
    .clk(clk), .enable(enable),
    .in({
        nan_3,
        infinite_3 || (normal && above >= $signed({{SIGNED-EXPONENT{1'b0}}, EXPONENT_MAX})),
        sign_3,
        normal ? above[EXPONENT-1:0] : {EXPONENT{1'b0}},
        normal ? BELOW[SHIFT-1:0] + zeros : to_subnormal < 0 ? {SHIFT{1'b0}} : to_subnormal[SHIFT-1:0],
        exact_3
    }),
    .out({nan_4, infinite_4, sign_4, exponent_4, shift_4, exact_4})
);

// 5: the leading one moves to the topmost bit, or as near as the exponent allows. What stays behind the
// guard bit is the sticky bit.
wire [WIDE-1:0] moved = {{BELOW{1'b0}}, exact_4} << shift_4;
wire leading_one_unused = moved[WIDE-1];

wire nan_5, infinite_5, sign_5, guard_5, sticky_5;
wire [EXPONENT-1:0] exponent_5;
wire [FRACTION-1:0] fraction_5;

pipe #(.WIDTH(5 + EXPONENT + FRACTION), .REGISTERED(REGISTERS[4])) step_5 (
    .clk(clk), .enable(enable),
    .in({
        nan_4, infinite_4, sign_4, exponent_4,
        moved[WIDE-2 -: FRACTION], moved[WIDE-2-FRACTION], |moved[WIDE-3-FRACTION:0]
    }),
    .out({nan_5, infinite_5, sign_5, exponent_5, fraction_5, guard_5, sticky_5})
);

// 6: rounding. A carry out of the fraction counts the exponent up; out of the largest number it makes an
// infinity.
wire up = guard_5 && (sticky_5 || fraction_5[0]);
wire [EXPONENT+FRACTION-1:0] rounded = {exponent_5, fraction_5} + {{EXPONENT+FRACTION-1{1'b0}}, up};

pipe #(.WIDTH(EXPONENT + FRACTION + 1), .REGISTERED(REGISTERS[5])) step_6 (
    .clk(clk), .enable(enable),
    .in(nan_5 ? {1'b0, EXPONENT_MAX, 1'b1, {FRACTION-1{1'b0}}} :
        infinite_5 ? {sign_5, EXPONENT_MAX, {FRACTION{1'b0}}} : {sign_5, rounded}),
    .out(product)
);

endmodule

`resetall
