// Adds two floating-point numbers of one format: IEEE 754, rounding to nearest, ties to even.
//
// Every result has the bits of a software addition (`a + b` of `f32` in Rust), subnormal operands and
// results included, with one exception. A result that is not a number is always the same quiet NaN:
// sign 0, exponent all ones, fraction 100..0. IEEE 754 and Rust leave the bits of a NaN open.
//
// One pair of operands enters a cycle. Their sum is at `sum` after as many enabled clock edges as
// REGISTERS has ones. There is no reset and no valid bit: the module that uses the adder knows which
// cycles count.
//
// Multipliers shift and add (`scaled_sum`): the lesser significand to the place of the greater one, with their
// sum; and the leading one to its place, with the exponent and the rounding. Both shifts are too long for one
// multiplier, so each has a coarse step before, which costs no LUT beyond that of the multiplexer there.

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
    parameter [5:0] REGISTERS = 6'b111111,
    // The lesser operand's significand moves by less than NEAR places, or by FAR - NEAR places more.
    parameter NEAR = FRACTION == 23 ? 16 : FRACTION == 52 ? 32 : (FRACTION + 8) / 2,
    // The sum's leading one moves by a multiple of BLOCK places, then by less than BLOCK.
    parameter BLOCK = FRACTION < 12 ? 4 : 8,
    // See `scaled_sum`.
    parameter MULTIPLY = 1
) (
    input  wire                         clk,
    // The registers move only in cycles in which `enable` is high.
    input  wire                         enable,
    // `sum` is `a`, whatever its bits say: also a NaN keeps its own.
    input  wire                         keep,
    input  wire [EXPONENT+FRACTION:0]   a,
    input  wire [EXPONENT+FRACTION:0]   b,
    output wire [EXPONENT+FRACTION:0]   sum
);

// A significand has its hidden bit.
localparam SIGNIFICAND = FRACTION + 1;
// At this distance, all of the lesser significand is below the guard bit: only whether it is zero counts.
localparam FAR = SIGNIFICAND + 3;
localparam BEYOND = FAR - NEAR;
// The sum of the significands: a carry, the greater one's bits, NEAR bits more.
localparam TOTAL = 1 + SIGNIFICAND + NEAR;
// Of it, what can become the fraction's bits and the guard bit.
localparam WINDOW = SIGNIFICAND + 2;
localparam BLOCKS = (WINDOW + BLOCK - 1) / BLOCK;
localparam WITHIN = $clog2(BLOCK);
localparam BLOCK_BITS = $clog2(BLOCKS);
localparam [EXPONENT-1:0] EXPONENT_MAX = {EXPONENT{1'b1}};

// Illegal parameters stop the elaboration.
generate
    if (EXPONENT < 2 || FRACTION < 2) begin : g_illegal
        fp_add_needs_two_bits_of_each illegal();
    end
    // The last bit of a far significand, in which the sticky bit is, has to stay below the guard bit.
    if (BEYOND < 1 || BEYOND > NEAR - 3 || BLOCK < 4 || (1 << WITHIN) != BLOCK) begin : g_illegal_shifts
        fp_add_cannot_shift_so illegal();
    end
endgenerate

// 1: the operand of the greater magnitude is `greater`.
wire [EXPONENT-1:0] a_exponent = a[FRACTION +: EXPONENT];
wire [EXPONENT-1:0] b_exponent = b[FRACTION +: EXPONENT];
wire a_is_greater = keep || a[EXPONENT+FRACTION-1:0] >= b[EXPONENT+FRACTION-1:0];
wire a_is_normal = a_exponent != 0;
wire b_is_normal = b_exponent != 0;
wire [SIGNIFICAND-1:0] a_significand = {a_is_normal, a[FRACTION-1:0]};
wire [SIGNIFICAND-1:0] b_significand = {b_is_normal, b[FRACTION-1:0]};
wire [SIGNIFICAND-1:0] greater = a_is_greater ? a_significand : b_significand;
wire [SIGNIFICAND-1:0] lesser = a_is_greater ? b_significand : a_significand;
// A subnormal number has the exponent of the smallest normal ones, and no hidden bit.
wire [EXPONENT-1:0] a_place = {a_exponent[EXPONENT-1:1], a_exponent[0] || !a_is_normal};
wire [EXPONENT-1:0] b_place = {b_exponent[EXPONENT-1:1], b_exponent[0] || !b_is_normal};
wire [EXPONENT-1:0] greater_place = a_is_greater ? a_place : b_place;
wire [EXPONENT-1:0] lesser_place = a_is_greater ? b_place : a_place;
wire a_is_special = a_exponent == EXPONENT_MAX;
wire b_is_special = b_exponent == EXPONENT_MAX;
wire signs_differ = a[EXPONENT+FRACTION] != b[EXPONENT+FRACTION];
wire special = !keep && (a_is_special || b_is_special);
wire a_is_nan = a_is_special && a[FRACTION-1:0] != 0;
wire b_is_nan = b_is_special && b[FRACTION-1:0] != 0;
wire nan = !keep && (a_is_nan || b_is_nan || (a_is_special && b_is_special && signs_differ));

wire nan_1, special_1, sign_1, subtract_1, keep_1;
wire [EXPONENT-1:0] exponent_1, distance_1;
wire [SIGNIFICAND-1:0] greater_1, lesser_1;

pipe #(.WIDTH(5 + 2*EXPONENT + 2*SIGNIFICAND), .REGISTERED(REGISTERS[0])) step_1 (
    .clk(clk), .enable(enable),
    .in({
        nan, special, a_is_greater ? a[EXPONENT+FRACTION] : b[EXPONENT+FRACTION], signs_differ && !keep, keep,
        greater_place, greater_place - lesser_place, greater, lesser
    }),
    .out({nan_1, special_1, sign_1, subtract_1, keep_1, exponent_1, distance_1, greater_1, lesser_1})
);

// 2: the coarse step of the lesser significand, and the power of two for the rest of its way. The bits that
// fall off make the last one sticky.
wire [31:0] distance = {{32-EXPONENT{1'b0}}, distance_1};
wire beyond = distance >= NEAR;
wire far = distance >= FAR;
wire [SIGNIFICAND-1:0] moved_1 = {{BEYOND{1'b0}}, lesser_1[SIGNIFICAND-1:BEYOND+1], lesser_1[BEYOND:0] != 0};
// Places of the rest of its way; ALONE for an operand that is kept.
localparam REST = $clog2(NEAR + 2);
localparam [REST-1:0] ALL = NEAR[REST-1:0];
localparam [REST-1:0] ALONE = ALL + 1'b1;
wire [31:0] rest = beyond ? distance - BEYOND : distance;
wire [31:REST] rest_unused = rest[31:REST];
wire [REST-1:0] places_1 = keep_1 ? ALONE : far ? ALL : rest[REST-1:0];
reg [NEAR+1:0] scale;
integer i;
always @* begin
    for (i = 0; i <= NEAR; i = i + 1)
        scale[i] = places_1 == ALL - i[REST-1:0] || (subtract_1 && places_1 > ALL - i[REST-1:0]);
    scale[NEAR+1] = subtract_1;
end

wire nan_2, special_2, sign_2, subtract_2, keep_2;
wire [EXPONENT-1:0] exponent_2;
wire [SIGNIFICAND-1:0] greater_2, lesser_2;
wire [NEAR+1:0] scale_2;

pipe #(.WIDTH(5 + EXPONENT + 2*SIGNIFICAND + NEAR + 2), .REGISTERED(REGISTERS[1])) step_2 (
    .clk(clk), .enable(enable),
    .in({
        nan_1, special_1, sign_1, subtract_1, keep_1, exponent_1, greater_1,
        beyond ? moved_1 : lesser_1,
        scale
    }),
    .out({nan_2, special_2, sign_2, subtract_2, keep_2, exponent_2, greater_2, lesser_2, scale_2})
);

// 3: the sum or the difference of the significands. It is not negative: `greater` has the greater
// magnitude.
wire nan_3, special_3, sign_3, subtract_3, last_exponent_3;
wire [EXPONENT-1:0] exponent_3;
wire [TOTAL-1:0] total, total_3;

scaled_sum #(.NUMBER(SIGNIFICAND), .SUM(TOTAL), .POWERS(NEAR + 1), .MULTIPLY(MULTIPLY)) align (
    .number(lesser_2), .scale(scale_2), .base({1'b0, greater_2, {NEAR{1'b0}}}),
    .sum(total)
);

pipe #(.WIDTH(5 + EXPONENT + TOTAL), .REGISTERED(REGISTERS[2])) step_3 (
    .clk(clk), .enable(enable),
    .in({
        nan_2, special_2, sign_2, subtract_2,
        // A carry makes this exponent that of the infinities.
        !keep_2 && exponent_2 == EXPONENT_MAX - 1'b1,
        exponent_2, total
    }),
    .out({nan_3, special_3, sign_3, subtract_3, last_exponent_3, exponent_3, total_3})
);

// 4: how far the leading one is from the carry bit, in blocks. Seen from the carry bit, a number of exponent e
// can move up by e places: by more, its exponent would fall below that of the smallest normal numbers.
wire [WINDOW-1:0] window_3 = total_3[TOTAL-1 -: WINDOW];
reg [BLOCK_BITS-1:0] blocks;
always @* begin
    blocks = 0;
    for (i = 1; i < BLOCKS; i = i + 1)
        if ((window_3 >> (WINDOW - BLOCK*i)) == 0 && {{32-EXPONENT{1'b0}}, exponent_3} >= BLOCK*i)
            blocks = i[BLOCK_BITS-1:0];
end

wire nan_4, special_4, sign_4, below_4, sticky_4, zero_4;
wire [EXPONENT-1:0] exponent_4;
wire [BLOCK_BITS-1:0] blocks_4;
wire [WINDOW-1:0] window_4;

pipe #(.WIDTH(6 + EXPONENT + BLOCK_BITS + WINDOW), .REGISTERED(REGISTERS[3])) step_4 (
    .clk(clk), .enable(enable),
    .in({
        nan_3, special_3 || (last_exponent_3 && total_3[TOTAL-1]),
        // A sum of exactly zero is positive, unless both operands are -0.
        sign_3 && !(subtract_3 && window_3 == 0),
        // Below the window. A sum that leaves something here moves up by two places at most.
        total_3[NEAR-2], total_3[NEAR-3:0] != 0,
        window_3 == 0, exponent_3, blocks, window_3
    }),
    .out({nan_4, special_4, sign_4, below_4, sticky_4, zero_4, exponent_4, blocks_4, window_4})
);

// 5: the leading one moves by blocks; the power of two for the rest of its way.
reg [WINDOW-1:0] moved;
always @* begin
    moved = 0;
    for (i = 0; i < BLOCKS; i = i + 1)
        if (blocks_4 == i[BLOCK_BITS-1:0]) moved = window_4 << (BLOCK*i);
end

// The exponent allows no full block more.
wire [31:0] highest = {{32-EXPONENT{1'b0}}, exponent_4};
wire limited = highest >> WITHIN == {{32-BLOCK_BITS{1'b0}}, blocks_4};
reg [BLOCK-1:0]  stops, step;
reg [WITHIN-1:0] places;
always @* begin
    places = 0;
    for (i = 0; i < BLOCK; i = i + 1)
        stops[i] = moved[WINDOW-1-i] || (limited && highest[WITHIN-1:0] == i[WITHIN-1:0]);
    for (i = 0; i < BLOCK; i = i + 1) begin
        step[i] = stops[i] && (stops & ((1 << i) - 1)) == 0;
        if (step[i]) places = places | i[WITHIN-1:0];
    end
end

wire [31:0] lowered = highest - {{32-BLOCK_BITS-WITHIN{1'b0}}, blocks_4, places};
wire [31:EXPONENT] lowered_unused = lowered[31:EXPONENT];

wire sign_5, quiet_5, below_5, sticky_5;
wire [EXPONENT-1:0] exponent_5;
wire [BLOCK-1:0] step_5_power;
wire [WINDOW-1:0] window_5;

pipe #(.WIDTH(4 + EXPONENT + BLOCK + WINDOW), .REGISTERED(REGISTERS[4])) step_5 (
    .clk(clk), .enable(enable),
    .in({
        sign_4 && !nan_4, nan_4, below_4, sticky_4,
        special_4 ? EXPONENT_MAX : zero_4 ? {EXPONENT{1'b0}} : lowered[EXPONENT-1:0],
        special_4 ? {BLOCK{1'b0}} : step, moved
    }),
    .out({sign_5, quiet_5, below_5, sticky_5, exponent_5, step_5_power, window_5})
);

// 6: the leading one moves to its place; half of the last bit's value is added. The hidden bit counts the
// exponent up, and so does a carry out of the fraction; out of the largest number it makes an infinity.
localparam HIDDEN = WINDOW - 1;
localparam ROUNDED = HIDDEN + 1 + (EXPONENT > BLOCK ? EXPONENT : BLOCK);
wire guard = below_5 && step_5_power[2];
wire [ROUNDED-1:0] rounded;

scaled_sum #(.NUMBER(WINDOW), .SUM(ROUNDED), .POWERS(BLOCK), .MULTIPLY(MULTIPLY)) normalise (
    .number(window_5), .scale({1'b0, step_5_power}),
    .base({{ROUNDED-EXPONENT-HIDDEN{1'b0}}, exponent_5, quiet_5, {FRACTION-2{1'b0}},
        guard, !guard, below_5 && step_5_power[1]}),
    .sum(rounded)
);

wire [ROUNDED-HIDDEN-EXPONENT-1:0] above_unused = rounded[ROUNDED-1:HIDDEN+EXPONENT];

// Exactly in the middle: the last bit becomes even.
wire middle = rounded[1:0] == 0 && !sticky_5 && !(below_5 && step_5_power[0]);

pipe #(.WIDTH(EXPONENT + FRACTION + 1), .REGISTERED(REGISTERS[5])) step_6 (
    .clk(clk), .enable(enable),
    .in({sign_5, rounded[HIDDEN+EXPONENT-1:3], rounded[2] && !middle}),
    .out(sum)
);

endmodule

`resetall
