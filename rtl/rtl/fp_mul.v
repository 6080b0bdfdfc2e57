// Multiplies two floating-point numbers of one format: IEEE 754, rounding to nearest, ties to even.
//
// Every result has the bits of a software multiplication (`a * b` of `f64` in Rust), subnormal operands
// and results included. A result that is not a number is always the same quiet NaN, as in `fp_add`.
//
// One pair of operands enters a cycle. Their product is at `product` after as many enabled clock edges
// as REGISTERS has ones. There is no reset and no valid bit: the module that uses the multiplier knows
// which cycles count.
//
// At most one operand of a product that counts is subnormal. The product has that operand's leading zeros, or one more.
// So the product moves up by blocks of the operand's zeros, and only its uppermost block is searched for the leading one.
// A multiplier by a power of two makes the last, short shift.

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
// The exact product moves by blocks, then by up to BLOCK places. Four blocks are a significand or more.
localparam WITHIN = SIGNIFICAND > 8 ? $clog2((SIGNIFICAND + 3) / 4) : 1;
localparam BLOCK = 1 << WITHIN;
// Of the exact product moved up by blocks: what can become the significand's bits and the guard bit.
localparam WINDOW = SIGNIFICAND + 1 + BLOCK;
// Bits of a window that one multiplier of the last shift takes: a DSP block takes 26 by 17 bits without a sign.
localparam PART = 26;
// The exact product with zeros below, so that it has a window after three blocks.
localparam PADDED = WINDOW + 3*BLOCK > EXACT ? WINDOW + 3*BLOCK : EXACT;
// Bits of sums of exponents with a sign.
localparam SIGNED = (EXPONENT > WITHIN + 2 ? EXPONENT : WITHIN + 2) + 2;
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
// Which blocks of the fractions are zero, from the uppermost one; the hidden bit belongs to that one.
wire [4*BLOCK-1:0] a_blocks = {1'b0, a[FRACTION-1:0], {4*BLOCK-SIGNIFICAND{1'b0}}};
wire [4*BLOCK-1:0] b_blocks = {1'b0, b[FRACTION-1:0], {4*BLOCK-SIGNIFICAND{1'b0}}};
reg [3:0] a_zeros, b_zeros;
integer i;
always @* begin
    for (i = 0; i < 4; i = i + 1) begin
        a_zeros[i] = a_blocks[4*BLOCK-1-i*BLOCK -: BLOCK] == 0;
        b_zeros[i] = b_blocks[4*BLOCK-1-i*BLOCK -: BLOCK] == 0;
    end
end
wire a_is_zero = !a_is_normal && &a_zeros;
wire b_is_zero = !b_is_normal && &b_zeros;
wire nan = (a_is_special && (!(&a_zeros) || b_is_zero)) || (b_is_special && (!(&b_zeros) || a_is_zero));
// The blocks of zeros above an operand's leading one. If both operands are subnormal, the product has those
// of both above it; and whatever is subnormal then has its place from the exponents alone.
wire [1:0] a_up = a_is_normal || !a_zeros[0] ? 2'd0 : !a_zeros[1] ? 2'd1 : {1'b1, a_zeros[2]};
wire [1:0] b_up = b_is_normal || !b_zeros[0] ? 2'd0 : !b_zeros[1] ? 2'd1 : {1'b1, b_zeros[2]};
// Both exponents, and one more.
wire [EXPONENT:0] exponents;
wire carry_unused;
assign {exponents, carry_unused} = {1'b0, a_exponent[EXPONENT-1:1], a_exponent[0] || !a_is_normal, 1'b1}
    + {1'b0, b_exponent[EXPONENT-1:1], b_exponent[0] || !b_is_normal, 1'b1};

wire nan_1, infinite_1, zero_1, sign_1;
wire [1:0] up_1;
wire [EXPONENT:0] exponents_1;
wire [SIGNIFICAND-1:0] a_1, b_1;

pipe #(.WIDTH(7 + EXPONENT + 2*SIGNIFICAND), .REGISTERED(REGISTERS[0])) step_1 (
    .clk(clk), .enable(enable),
    .in({
        nan, a_is_special || b_is_special, a_is_zero || b_is_zero, a[EXPONENT+FRACTION] != b[EXPONENT+FRACTION],
        a_up | b_up, exponents,
        {a_is_normal, a[FRACTION-1:0]},
        {b_is_normal, b[FRACTION-1:0]}
    }),
    .out({nan_1, infinite_1, zero_1, sign_1, up_1, exponents_1, a_1, b_1})
);

// 2: two addends of the product. `places`: how far a window's leading one can move up until its exponent is that
// of the smallest normal numbers; below zero, it has to move down.
wire [SIGNED-1:0] places = {{SIGNED-EXPONENT-1{1'b0}}, exponents_1} - (BIAS + 1'b1)
    - {{SIGNED-WITHIN-2{1'b0}}, up_1, {WITHIN{1'b0}}};
localparam FACTOR = SIGNIFICAND < 4 ? 4 : SIGNIFICAND;
// The second addend has no bits below.
localparam LOW = (FACTOR - 1) / 2;
wire [FACTOR-1:0] a_factor, b_factor;
wire [2*FACTOR-1:0] first;
wire [2*FACTOR-1:LOW] second;
generate
    if (FACTOR > SIGNIFICAND) begin : g_wider
        wire unused = &{1'b0, first[2*FACTOR-1:EXACT], second[2*FACTOR-1:EXACT]};
        assign a_factor = {{FACTOR-SIGNIFICAND{1'b0}}, a_1};
        assign b_factor = {{FACTOR-SIGNIFICAND{1'b0}}, b_1};
    end else begin : g_as_wide
        assign a_factor = a_1;
        assign b_factor = b_1;
    end
endgenerate

product_addends #(.WIDTH(FACTOR)) multiply (.a(a_factor), .b(b_factor), .first(first), .second(second));

wire nan_2, infinite_2, zero_2, sign_2;
wire [1:0] up_2;
wire [SIGNED-1:0] places_2;
wire [EXACT-1:0] first_2;
wire [EXACT-1:LOW] second_2;

pipe #(.WIDTH(6 + SIGNED + 2*EXACT - LOW), .REGISTERED(REGISTERS[1])) step_2 (
    .clk(clk), .enable(enable),
    .in({
        nan_1, infinite_1, zero_1, sign_1, up_1, places, first[EXACT-1:0], second[EXACT-1:LOW]
    }),
    .out({nan_2, infinite_2, zero_2, sign_2, up_2, places_2, first_2, second_2})
);

// 3: their sum is the exact product.
wire nan_3, infinite_3, zero_3, sign_3;
wire [1:0] up_3;
wire [SIGNED-1:0] places_3;
wire [EXACT-1:0] exact_3;

pipe #(.WIDTH(6 + SIGNED + EXACT), .REGISTERED(REGISTERS[2])) step_3 (
    .clk(clk), .enable(enable),
    .in({nan_2, infinite_2, zero_2, sign_2, up_2, places_2, first_2[EXACT-1:LOW] + second_2, first_2[LOW-1:0]}),
    .out({nan_3, infinite_3, zero_3, sign_3, up_3, places_3, exact_3})
);

// 4: the product moves up by blocks, and its leading one is searched in the BLOCK + 1 bits at the top. What is
// below the window is sticky.
wire [PADDED-1:0] unmoved;
generate
    if (PADDED > EXACT) assign unmoved = {exact_3, {PADDED-EXACT{1'b0}}};
    else assign unmoved = exact_3;
endgenerate
wire [PADDED-1:0] moved_up = up_3[1] ? (up_3[0] ? unmoved << 3*BLOCK : unmoved << 2*BLOCK)
    : (up_3[0] ? unmoved << BLOCK : unmoved);
wire [WINDOW-1:0] window = moved_up[PADDED-1 -: WINDOW];

reg [WITHIN:0] zeros;
always @* begin
    zeros = BLOCK[WITHIN:0];
    for (i = BLOCK - 1; i >= 0; i = i - 1)
        if (window[WINDOW-1-i]) zeros = i[WITHIN:0];
end

wire below = places_3[SIGNED-1];
wire limited = below || (places_3[SIGNED-1:WITHIN] == 0 && {1'b0, places_3[WITHIN-1:0]} < zeros);
// The last, short shift.
wire [WITHIN:0] shift = limited ? {1'b0, places_3[WITHIN-1:0]} : zeros;
// After more than four blocks down nothing is left at the guard bit.
wire far = below && !(&places_3[SIGNED-1:WITHIN+2]);

wire nan_4, infinite_4, none_4, sign_4, sticky_4, below_4;
wire [WITHIN:0] shift_4;
wire [SIGNED-1:0] places_4;
wire [WINDOW-1:0] window_4;

pipe #(.WIDTH(7 + WITHIN + SIGNED + WINDOW), .REGISTERED(REGISTERS[3])) step_4 (
    .clk(clk), .enable(enable),
    .in({
        nan_3, infinite_3, zero_3 || far, sign_3, |moved_up[PADDED-WINDOW-1:0], below,
        shift, places_3, window
    }),
    .out({nan_4, infinite_4, none_4, sign_4, sticky_4, below_4, shift_4, places_4, window_4})
);

// 5: a product whose exponent is too small moves down by one to four blocks; what falls off is sticky. Then the
// exponent, which the hidden bit is to count up, and the power of two for the last shift.
localparam LOST = 4*BLOCK;
wire [WINDOW+LOST-1:0] above = {window_4, {LOST{1'b0}}};
reg [WINDOW+LOST-1:0] moved_down;
always @* begin
    moved_down = above;
    for (i = 0; i < 4; i = i + 1)
        if (below_4 && ~places_4[WITHIN +: 2] == i[1:0]) moved_down = above >> BLOCK*(i + 1);
end

wire [SIGNED-1:0] exponent = ~(~places_4 + {{SIGNED-WITHIN-1{1'b0}}, shift_4});
wire negative_unused = exponent[SIGNED-1];
wire infinite = infinite_4 || (!below_4 && exponent[SIGNED-2:0] >= {{SIGNED-1-EXPONENT{1'b0}}, EXPONENT_MAX - 1'b1});
wire special = nan_4 || infinite;
reg [BLOCK:0] scale;
always @* begin
    for (i = 0; i <= BLOCK; i = i + 1)
        scale[i] = !special && !none_4 && shift_4 == i[WITHIN:0];
end

wire sign_5, quiet_5, sticky_5;
wire [EXPONENT-1:0] exponent_5;
wire [BLOCK:0] scale_5;
wire [WINDOW-1:0] window_5;

pipe #(.WIDTH(4 + EXPONENT + BLOCK + WINDOW), .REGISTERED(REGISTERS[4])) step_5 (
    .clk(clk), .enable(enable),
    .in({
        sign_4 && !nan_4, nan_4, sticky_4 || moved_down[LOST-1:0] != 0,
        special ? EXPONENT_MAX : none_4 || below_4 ? {EXPONENT{1'b0}} : exponent[EXPONENT-1:0],
        scale, moved_down[WINDOW+LOST-1:LOST]
    }),
    .out({sign_5, quiet_5, sticky_5, exponent_5, scale_5, window_5})
);

// 6: the last shift; half of the last bit's value is added. The hidden bit counts the exponent up, and so does a carry
// out of the fraction; out of the largest number it makes an infinity.
localparam PARTS = (WINDOW + PART - 1) / PART;
localparam OVER = PARTS*PART + BLOCK + 1;
wire [OVER-1:0] parts = {{OVER-WINDOW{1'b0}}, window_5};
genvar g;
generate
    for (g = 0; g < PARTS; g = g + 1) begin : g_part
        wire [PART+BLOCK:0] part = {{BLOCK+1{1'b0}}, parts[g*PART +: PART]} * {{PART{1'b0}}, scale_5};
        // The parts have no bit in common.
        wire [OVER-1:0] all;
        if (g == 0) begin : g_first
            assign all = {{OVER-PART-BLOCK-1{1'b0}}, part};
        end else begin : g_next
            assign all = g_part[g-1].all | {{OVER-PART-BLOCK-1{1'b0}}, part} << g*PART;
        end
    end
endgenerate
wire [OVER-1:0] moved = g_part[PARTS-1].all;
wire overflow_unused = &{1'b0, moved[OVER-1:WINDOW], parts[OVER-1:PARTS*PART]};

// From the guard bit up. A carry chain takes its first operand as it is, and what makes the second one joins its LUTs.
wire [EXPONENT+FRACTION:0] rounded = {exponent_5, quiet_5, {FRACTION-1{1'b0}}, 1'b1}
    + {{EXPONENT-1{1'b0}}, moved[WINDOW-1:BLOCK]};
// Exactly in the middle: the last bit becomes even.
wire middle = !rounded[0] && !sticky_5 && moved[BLOCK-1:0] == 0;

pipe #(.WIDTH(EXPONENT + FRACTION + 1), .REGISTERED(REGISTERS[5])) step_6 (
    .clk(clk), .enable(enable),
    .in({sign_5, rounded[EXPONENT+FRACTION:2], rounded[1] && !middle}),
    .out(product)
);

endmodule

`resetall
