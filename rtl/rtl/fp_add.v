// Adds two floating-point numbers of one format: IEEE 754, rounding to nearest, ties to even.
//
// Every result has the bits of a software addition (`a + b` of `f32` in Rust), subnormal operands and
// results included, with one exception. A result that is not a number is always the same quiet NaN:
// sign 0, exponent all ones, fraction 100..0. IEEE 754 and Rust leave the bits of a NaN open.
//
// One pair of operands enters a cycle. Their sum is at `sum` after as many enabled clock edges as
// REGISTERS has ones. There is no reset and no valid bit: the module that uses the adder knows which
// cycles count.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp_add #(
    // Bits of the exponent: 8 for f32, 11 for f64.
    parameter EXPONENT = 8,
    // Bits of the fraction, without the hidden one: 23 for f32, 52 for f64.
    parameter FRACTION = 23,
    // Bit i: a register stands behind step i + 1. All six give the shortest paths. Two, behind the
    // steps 3 and 6, let a sum be added to again two cycles later.
    parameter [5:0] REGISTERS = 6'b111111
) (
    input  wire                         clk,
    // The registers move only in cycles in which `enable` is high.
    input  wire                         enable,
    input  wire [EXPONENT+FRACTION:0]   a,
    input  wire [EXPONENT+FRACTION:0]   b,
    output wire [EXPONENT+FRACTION:0]   sum
);

// A significand has its hidden bit; three more bits at the end are guard, round and sticky.
localparam SIGNIFICAND = FRACTION + 1;
localparam WIDE = SIGNIFICAND + 3;
// Bits that hold a shift of 0 .. WIDE + 1.
localparam SHIFT = $clog2(WIDE + 2);
localparam [EXPONENT-1:0] EXPONENT_MAX = {EXPONENT{1'b1}};

// Illegal parameters stop the elaboration.
generate
    if (EXPONENT < 2 || FRACTION < 2) begin : g_illegal
        fp_add_needs_two_bits_of_each illegal();
    end
endgenerate

// 1: the operand of the greater magnitude is `greater`.
wire [EXPONENT-1:0] a_exponent = a[FRACTION +: EXPONENT];
wire [EXPONENT-1:0] b_exponent = b[FRACTION +: EXPONENT];
wire a_is_greater = a[EXPONENT+FRACTION-1:0] >= b[EXPONENT+FRACTION-1:0];
wire [EXPONENT+FRACTION-1:0] greater =
    a_is_greater ? a[EXPONENT+FRACTION-1:0] : b[EXPONENT+FRACTION-1:0];
wire [EXPONENT+FRACTION-1:0] lesser =
    a_is_greater ? b[EXPONENT+FRACTION-1:0] : a[EXPONENT+FRACTION-1:0];
wire a_is_special = a_exponent == EXPONENT_MAX;
wire b_is_special = b_exponent == EXPONENT_MAX;
wire a_is_nan = a_is_special && a[FRACTION-1:0] != 0;
wire b_is_nan = b_is_special && b[FRACTION-1:0] != 0;
wire signs_differ = a[EXPONENT+FRACTION] != b[EXPONENT+FRACTION];
wire greater_is_normal = greater[FRACTION +: EXPONENT] != 0;
wire lesser_is_normal = lesser[FRACTION +: EXPONENT] != 0;
// A subnormal number has the exponent of the smallest normal ones, and no hidden bit.
wire [EXPONENT-1:0] greater_exponent = greater_is_normal ? greater[FRACTION +: EXPONENT] : 1;
wire [EXPONENT-1:0] lesser_exponent = lesser_is_normal ? lesser[FRACTION +: EXPONENT] : 1;

wire nan_1, infinite_1, sign_1, subtract_1;
wire [EXPONENT-1:0] exponent_1, distance_1;
wire [SIGNIFICAND-1:0] greater_1, lesser_1;

pipe #(.WIDTH(4 + 2*EXPONENT + 2*SIGNIFICAND), .REGISTERED(REGISTERS[0])) step_1 (
    .clk(clk), .enable(enable),
    .in({
        a_is_nan || b_is_nan || (a_is_special && b_is_special && signs_differ),
        a_is_special || b_is_special,
        a_is_greater ? a[EXPONENT+FRACTION] : b[EXPONENT+FRACTION],
        signs_differ,
        greater_exponent,
        greater_exponent - lesser_exponent,
        {greater_is_normal, greater[FRACTION-1:0]},
        {lesser_is_normal, lesser[FRACTION-1:0]}
    }),
    .out({nan_1, infinite_1, sign_1, subtract_1, exponent_1, distance_1, greater_1, lesser_1})
);

// 2: the lesser significand moves to the exponent of the greater one. The sticky bit is the OR of all
// bits that fall off.
wire [2*WIDE-1:0] aligned = {lesser_1, 3'd0, {WIDE{1'b0}}} >> distance_1;
// A shift by the whole width or more loses everything that `aligned` could show.
wire too_far = {{32-EXPONENT{1'b0}}, distance_1} >= WIDE;

wire nan_2, infinite_2, sign_2, subtract_2;
wire [EXPONENT-1:0] exponent_2;
wire [WIDE-1:0] greater_2, lesser_2;

pipe #(.WIDTH(4 + EXPONENT + 2*WIDE), .REGISTERED(REGISTERS[1])) step_2 (
    .clk(clk), .enable(enable),
    .in({
        nan_1, infinite_1, sign_1, subtract_1, exponent_1,
        {greater_1, 3'd0},
        too_far ? {{WIDE-1{1'b0}}, lesser_1 != 0}
                : {aligned[2*WIDE-1:WIDE+1], |aligned[WIDE:0]}
    }),
    .out({nan_2, infinite_2, sign_2, subtract_2, exponent_2, greater_2, lesser_2})
);

// 3: the sum or the difference of the significands. It is not negative: `greater` has the greater
// magnitude.
wire nan_3, infinite_3, sign_3, subtract_3;
wire [EXPONENT-1:0] exponent_3;
wire [WIDE:0] total_3;

pipe #(.WIDTH(4 + EXPONENT + WIDE + 1), .REGISTERED(REGISTERS[2])) step_3 (
    .clk(clk), .enable(enable),
    .in({
        nan_2, infinite_2, sign_2, subtract_2, exponent_2,
        subtract_2 ? {1'b0, greater_2} - {1'b0, lesser_2} : {1'b0, greater_2} + {1'b0, lesser_2}
    }),
    .out({nan_3, infinite_3, sign_3, subtract_3, exponent_3, total_3})
);

// 4: how far the leading one is from the carry bit.
reg [SHIFT-1:0] zeros;
integer i;
always @* begin
    zeros = WIDE[SHIFT-1:0] + 1'b1;
    for (i = 0; i <= WIDE; i = i + 1)
        if (total_3[i]) zeros = WIDE[SHIFT-1:0] - i[SHIFT-1:0];
end

// One bit more than both, so that nothing below wraps around.
localparam COMMON = (EXPONENT > SHIFT ? EXPONENT : SHIFT) + 1;
wire [COMMON-1:0] places = {{COMMON-EXPONENT{1'b0}}, exponent_3};
wire [COMMON-1:0] distance = {{COMMON-SHIFT{1'b0}}, zeros};
// Seen from the carry bit, a number of exponent e can move left by e places. By more, its exponent
// would fall below that of the smallest normal numbers: the sum is subnormal.
wire subnormal = distance > places;
wire zero = total_3 == 0;
wire [COMMON-1:0] normal_exponent = places + 1'b1 - distance;

wire nan_4, infinite_4, sign_4;
wire [EXPONENT:0] exponent_4;
wire [SHIFT-1:0] shift_4;
wire [WIDE:0] total_4;

pipe #(.WIDTH(3 + EXPONENT + 1 + SHIFT + WIDE + 1), .REGISTERED(REGISTERS[3])) step_4 (
    .clk(clk), .enable(enable),
    .in({
        nan_3, infinite_3,
        // A sum of exactly zero is positive, unless both operands are -0.
        sign_3 && !(subtract_3 && zero),
        subnormal || zero ? {EXPONENT+1{1'b0}} : normal_exponent[EXPONENT:0],
        // The exponent of a subnormal sum is less than `zeros`, so it has as few bits.
        subnormal ? places[SHIFT-1:0] : zeros,
        total_3
    }),
    .out({nan_4, infinite_4, sign_4, exponent_4, shift_4, total_4})
);

// 5: the leading one moves to the place of the carry bit, or as near as the exponent allows.
wire nan_5, infinite_5, sign_5;
wire [EXPONENT-1:0] exponent_5;
wire [WIDE:0] total_5;

pipe #(.WIDTH(3 + EXPONENT + WIDE + 1), .REGISTERED(REGISTERS[4])) step_5 (
    .clk(clk), .enable(enable),
    .in({
        nan_4, infinite_4 || exponent_4 >= {1'b0, EXPONENT_MAX}, sign_4,
        exponent_4[EXPONENT-1:0],
        total_4 << shift_4
    }),
    .out({nan_5, infinite_5, sign_5, exponent_5, total_5})
);

// 6: rounding. A carry out of the fraction counts the exponent up; out of the largest number it
// makes an infinity.
wire [FRACTION-1:0] fraction = total_5[WIDE-1 -: FRACTION];
wire guard = total_5[WIDE-1-FRACTION];
wire sticky = |total_5[WIDE-2-FRACTION:0];
wire up = guard && (sticky || fraction[0]);
wire [EXPONENT+FRACTION-1:0] rounded =
    {exponent_5, fraction} + {{EXPONENT+FRACTION-1{1'b0}}, up};
wire leading_one_unused = total_5[WIDE];

pipe #(.WIDTH(EXPONENT + FRACTION + 1), .REGISTERED(REGISTERS[5])) step_6 (
    .clk(clk), .enable(enable),
    .in(nan_5 ? {1'b0, EXPONENT_MAX, 1'b1, {FRACTION-1{1'b0}}} :
        infinite_5 ? {sign_5, EXPONENT_MAX, {FRACTION{1'b0}}} : {sign_5, rounded}),
    .out(sum)
);

endmodule

`resetall
