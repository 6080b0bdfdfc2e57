// The multiplier does what the shifts do. The proofs of `fp_add` use the shifts: a solver is slow at products.

`default_nettype none

module scaled_sum_props #(
    parameter NUMBER = 24,
    parameter SUM = 41,
    parameter POWERS = 17
) (
    input wire clk
);

(* anyconst *) reg [NUMBER-1:0] number;
(* anyconst *) reg [SUM-1:0] base;

// All that a scale may be, each in modules of its own: 0, the powers, the negative powers. A product with a constant
// is done at once.
localparam [POWERS:0] ONE = 1;
localparam [POWERS:0] NONE = 0;
wire [SUM-1:0] wide = number;
genvar i;
generate
    for (i = 0; i <= 2*POWERS; i = i + 1) begin : g_scale
        localparam NEGATIVE = i >= POWERS;
        localparam PLACES = i % POWERS;
        localparam [POWERS:0] SCALE =
            i == 2*POWERS ? NONE : NEGATIVE ? NONE - (ONE << PLACES) : ONE << PLACES;
        wire [SUM-1:0] multiplied, shifted;
        scaled_sum #(.NUMBER(NUMBER), .SUM(SUM), .POWERS(POWERS), .MULTIPLY(1)) multiplies (
            .number(number), .scale(SCALE), .base(base), .sum(multiplied)
        );
        scaled_sum #(.NUMBER(NUMBER), .SUM(SUM), .POWERS(POWERS), .MULTIPLY(0)) shifts (
            .number(number), .scale(SCALE), .base(base), .sum(shifted)
        );
        wire [SUM-1:0] expected = i == 2*POWERS ? base : NEGATIVE ? base - (wide << PLACES) : base + (wide << PLACES);
        always @* begin
            assert (multiplied == expected);
            assert (shifted == expected);
        end
        always @* cover (shifted != base || i == 2*POWERS);
    end
endgenerate

endmodule
