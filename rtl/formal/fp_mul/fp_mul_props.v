// What `fp_mul` promises, for one pair of operands that the prover chooses.
//
// The pipeline has no feedback: the operands of one enabled cycle alone decide one result, at most six
// enabled cycles later. A bounded proof over those cycles, from any content of the registers, is
// therefore complete.

`default_nettype none

module fp_mul_props #(
    parameter EXPONENT = 11,
    parameter FRACTION = 52,
    parameter [5:0] REGISTERS = 6'b111111,
    // 1: compare with the exact product in a wide fixed-point number. Only for small formats.
    parameter EXACT = 0,
    // 1: b is a power of two. A prover cannot multiply 53 bits by 53.
    parameter POWER = 0
) (
    input wire clk
);

localparam BITS = 1 + EXPONENT + FRACTION;
// The 0 has 32 bits; without it the sum would have one.
localparam LATENCY = 0 + REGISTERS[0] + REGISTERS[1] + REGISTERS[2] + REGISTERS[3] + REGISTERS[4]
    + REGISTERS[5];
localparam BIAS = (1 << (EXPONENT - 1)) - 1;
localparam [EXPONENT-1:0] EXPONENT_MAX = {EXPONENT{1'b1}};
localparam TOP = (1 << EXPONENT) - 1;
localparam [BITS-2:0] INFINITY = {EXPONENT_MAX, {FRACTION{1'b0}}};
localparam [BITS-1:0] NAN = {1'b0, EXPONENT_MAX, 1'b1, {FRACTION-1{1'b0}}};

(* anyconst *) reg [BITS-1:0] a;
(* anyconst *) reg [BITS-1:0] any;
wire [BITS-1:0] b = POWER ? {any[BITS-1:FRACTION], {FRACTION{1'b0}}} : any;

wire [BITS-1:0] product;
fp_mul #(.EXPONENT(EXPONENT), .FRACTION(FRACTION), .REGISTERS(REGISTERS)) multiply (
    .clk(clk), .enable(1'b1), .a(a), .b(b), .product(product)
);

reg [3:0] cycle = 0;
always @(posedge clk) if (cycle < LATENCY) cycle <= cycle + 1;
wire done = cycle == LATENCY;

wire a_nan = a[BITS-2:0] > INFINITY;
wire b_nan = b[BITS-2:0] > INFINITY;
wire a_infinite = a[BITS-2:0] == INFINITY;
wire b_infinite = b[BITS-2:0] == INFINITY;
wire a_zero = a[BITS-2:0] == 0;
wire b_zero = b[BITS-2:0] == 0;
wire sign = a[BITS-1] != b[BITS-1];
wire [EXPONENT-1:0] b_exponent = b[BITS-2:FRACTION];
// The exponent of the product with a power of two, if it is normal.
wire signed [EXPONENT+1:0] moved = a[BITS-2:FRACTION] + b_exponent - BIAS;

// Not clocked: a clocked property is looked at a cycle later, and a proof of one cycle would be empty.
always @* if (done) begin
    if (a_nan || b_nan || (a_infinite && b_zero) || (a_zero && b_infinite)) begin
        one_nan: assert (product == NAN);
    end else begin
        right_sign: assert (product[BITS-1] == sign);
        number: assert (product[BITS-2:0] <= INFINITY);
        if (a_infinite || b_infinite) infinite: assert (product[BITS-2:0] == INFINITY);
        if (a_zero || b_zero) zero: assert (product[BITS-2:0] == 0);
        if (POWER && b_exponent == BIAS) by_one: assert (product[BITS-2:0] == a[BITS-2:0]);
        // A power of two moves the exponent, and nothing else.
        if (POWER && !a_infinite && !b_infinite && a[BITS-2:FRACTION] != 0 && b_exponent != 0) begin
            if (moved > 0 && moved < TOP)
                by_power: assert (product[BITS-2:0] == {moved[EXPONENT-1:0], a[FRACTION-1:0]});
            if (moved >= TOP) too_large: assert (product[BITS-2:0] == INFINITY);
            if (moved < -FRACTION) too_small: assert (product[BITS-2:0] == 0);
        end
    end
end

// The covers show that each corner can be reached.
always @(posedge clk) if (done) begin
    overflow: cover (product[BITS-2:0] == INFINITY && !a_infinite && !b_infinite);
    subnormal: cover (product[BITS-2:0] != 0 && product[BITS-2:FRACTION] == 0 && a[BITS-2:FRACTION] != 0
        && b[BITS-2:FRACTION] != 0);
    becomes_normal: cover (product[BITS-2:FRACTION] != 0 && a[BITS-2:FRACTION] == 0);
    vanishes: cover (product == {1'b1, {BITS-1{1'b0}}} && !a_zero && !b_zero);
    nan: cover (product == NAN && !a_nan && !b_nan);
end

generate
    if (EXACT) begin : g_exact
        // A finite number is an integer multiple of the smallest subnormal one, which is 2^-UNIT.
        localparam UNIT = BIAS - 1 + FRACTION;
        localparam WIDE = 2*((1 << EXPONENT) + FRACTION) + UNIT;

        function [WIDE-1:0] units(input [BITS-2:0] number);
            if (number[BITS-2:FRACTION] == 0) units = number[FRACTION-1:0];
            else units = {1'b1, number[FRACTION-1:0]} << (number[BITS-2:FRACTION] - 1);
        endfunction

        // All in units of 2^-2*UNIT, and doubled, so that half a step is a whole number.
        wire [BITS-2:0] size = product[BITS-2:0];
        wire [WIDE-1:0] beyond = units(INFINITY - 1) + units(INFINITY - 1) - units(INFINITY - 2);
        wire [WIDE-1:0] exact = (units(a[BITS-2:0]) * units(b[BITS-2:0])) << 1;
        wire [WIDE-1:0] mine = size == INFINITY ? beyond : units(size);
        wire [WIDE-1:0] above = size == INFINITY - 1 ? beyond : units(size + 1'b1);
        wire [WIDE-1:0] middle_below = (mine + units(size - 1'b1)) << UNIT;
        wire [WIDE-1:0] middle_above = (mine + above) << UNIT;
        wire even = !product[0];

        always @* if (done && !a_nan && !b_nan && !a_infinite && !b_infinite) begin
            // Not below the middle between the number and the next lower one.
            if (size != 0) not_too_large: assert (even ? exact >= middle_below : exact > middle_below);
            if (size != INFINITY)
                not_too_small: assert (even ? exact <= middle_above : exact < middle_above);
        end
    end
endgenerate

endmodule
