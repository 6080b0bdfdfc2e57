// What `fp_add` promises, for one pair of operands that the prover chooses.
//
// The pipeline has no feedback: the operands of one enabled cycle alone decide one result, at most six
// enabled cycles later. A bounded proof over those cycles, from any content of the registers, is
// therefore complete.

`default_nettype none

module fp_add_props #(
    parameter EXPONENT = 8,
    parameter FRACTION = 23,
    parameter [5:0] REGISTERS = 6'b111111,
    // 1: compare with the exact sum in a wide fixed-point number. Only for small formats.
    parameter EXACT = 0,
    // Shifts in place of multipliers: `formal/scaled_sum` says that both do the same.
    parameter MULTIPLY = 0
) (
    input wire clk
);

localparam BITS = 1 + EXPONENT + FRACTION;
// The 0 has 32 bits; without it the sum would have one.
localparam LATENCY = 0 + REGISTERS[0] + REGISTERS[1] + REGISTERS[2] + REGISTERS[3] + REGISTERS[4]
    + REGISTERS[5];
localparam [EXPONENT-1:0] EXPONENT_MAX = {EXPONENT{1'b1}};
localparam [BITS-2:0] INFINITY = {EXPONENT_MAX, {FRACTION{1'b0}}};
localparam [BITS-1:0] NAN = {1'b0, EXPONENT_MAX, 1'b1, {FRACTION-1{1'b0}}};

(* anyconst *) reg [BITS-1:0] a;
(* anyconst *) reg [BITS-1:0] b;

wire [BITS-1:0] sum, swapped, negated, kept;
fp_add #(.EXPONENT(EXPONENT), .FRACTION(FRACTION), .REGISTERS(REGISTERS), .MULTIPLY(MULTIPLY)) add (
    .clk(clk), .enable(1'b1), .keep(1'b0), .a(a), .b(b), .sum(sum)
);
fp_add #(.EXPONENT(EXPONENT), .FRACTION(FRACTION), .REGISTERS(REGISTERS), .MULTIPLY(MULTIPLY)) add_swapped (
    .clk(clk), .enable(1'b1), .keep(1'b0), .a(b), .b(a), .sum(swapped)
);
fp_add #(.EXPONENT(EXPONENT), .FRACTION(FRACTION), .REGISTERS(REGISTERS), .MULTIPLY(MULTIPLY)) add_negated (
    .clk(clk), .enable(1'b1), .keep(1'b0), .a({!a[BITS-1], a[BITS-2:0]}), .b({!b[BITS-1], b[BITS-2:0]}),
    .sum(negated)
);
fp_add #(.EXPONENT(EXPONENT), .FRACTION(FRACTION), .REGISTERS(REGISTERS), .MULTIPLY(MULTIPLY)) add_nothing (
    .clk(clk), .enable(1'b1), .keep(1'b1), .a(a), .b(b), .sum(kept)
);

reg [3:0] cycle = 0;
always @(posedge clk) if (cycle < LATENCY) cycle <= cycle + 1;
wire done = cycle == LATENCY;

wire a_nan = a[BITS-2:0] > INFINITY;
wire b_nan = b[BITS-2:0] > INFINITY;
wire a_infinite = a[BITS-2:0] == INFINITY;
wire b_infinite = b[BITS-2:0] == INFINITY;
wire opposite = a[BITS-2:0] == b[BITS-2:0] && a[BITS-1] != b[BITS-1];

// Not clocked: a clocked property is looked at a cycle later, and a proof of one cycle would be empty.
always @* if (done) begin
    commutes: assert (sum == swapped);
    keeps: assert (kept == a);
    if (a_nan || b_nan || (a_infinite && opposite)) begin
        one_nan: assert (sum == NAN);
    end else begin
        number: assert (sum[BITS-2:0] <= INFINITY);
        if (a_infinite) infinite: assert (sum == a);
        if (b[BITS-2:0] == 0 && a[BITS-2:0] != 0) zero_adds_nothing: assert (sum == a);
        if (opposite) cancels: assert (sum == 0);
        if (sum[BITS-2:0] != 0) symmetric: assert (negated == {!sum[BITS-1], sum[BITS-2:0]});
        // Numbers of one sign: the sum is not below either of them.
        if (a[BITS-1] == b[BITS-1]) grows: assert (sum[BITS-2:0] >= a[BITS-2:0]);
    end
end

// The covers show that each corner can be reached.
always @(posedge clk) if (done) begin
    overflow: cover (sum[BITS-2:0] == INFINITY && !a_infinite && !b_infinite);
    subnormal: cover (sum[BITS-2:0] != 0 && sum[BITS-2:FRACTION] == 0 && a[BITS-2:FRACTION] != 0);
    becomes_normal: cover (sum[BITS-2:FRACTION] == 1 && a[BITS-2:FRACTION] == 0 && b[BITS-2:FRACTION] == 0);
    far_apart: cover (sum == a && b[BITS-2:FRACTION] != 0);
    negative_zero: cover (sum == {1'b1, {BITS-1{1'b0}}});
    nan: cover (sum == NAN);
end

generate
    if (EXACT) begin : g_exact
        // A finite number is an integer multiple of the smallest subnormal one.
        localparam WIDE = (1 << EXPONENT) + FRACTION + 2;
        wire [WIDE-1:0] a_units = units(a);
        wire [WIDE-1:0] b_units = units(b);
        wire [WIDE-1:0] total = a_units + b_units;
        wire [WIDE-1:0] magnitude = total[WIDE-1] ? -total : total;

        function [WIDE-1:0] units(input [BITS-1:0] number);
            reg [WIDE-1:0] size;
            begin
                if (number[BITS-2:FRACTION] == 0) size = number[FRACTION-1:0];
                else size = {1'b1, number[FRACTION-1:0]} << (number[BITS-2:FRACTION] - 1);
                units = number[BITS-1] ? -size : size;
            end
        endfunction

        // The format's numbers in the order of their magnitudes: is `sum` the nearest one to `total`?
        // Twice the distances, so that half a step is a whole number.
        wire [WIDE+1:0] exact = {2'd0, magnitude} << 1;
        wire [WIDE+1:0] mine = sum[BITS-2:0] == INFINITY
            ? {2'd0, units(INFINITY - 1)} + {2'd0, units(INFINITY - 1) - units(INFINITY - 2)}
            : {2'd0, units({1'b0, sum[BITS-2:0]})};
        wire [WIDE+1:0] below = {2'd0, units({1'b0, sum[BITS-2:0]} - 1'b1)};
        wire [WIDE+1:0] above = sum[BITS-2:0] == INFINITY - 1
            ? {2'd0, units(INFINITY - 1)} + {2'd0, units(INFINITY - 1) - units(INFINITY - 2)}
            : {2'd0, units({1'b0, sum[BITS-2:0]} + 1'b1)};
        wire even = !sum[0];

        always @* if (done && !a_nan && !b_nan && !a_infinite && !b_infinite) begin
            // Not below the middle between the number and the next lower one.
            if (sum[BITS-2:0] != 0)
                not_too_large: assert (even ? exact >= mine + below : exact > mine + below);
            if (sum[BITS-2:0] != INFINITY)
                not_too_small: assert (even ? exact <= mine + above : exact < mine + above);
            if (total != 0) right_sign: assert (sum[BITS-1] == total[WIDE-1]);
        end
    end
endgenerate

endmodule
