// The multiplier does what the shifts do. The proofs of `fp_add` use the shifts: a solver is slow at products.

`default_nettype none

module scaled_sum_props #(
    parameter NUMBER = 24,
    parameter SUM = 41,
    parameter POWERS = 17,
    parameter SUBTRACTS = 1
) (
    input wire clk
);

(* anyconst *) reg [NUMBER-1:0] number;
(* anyconst *) reg [POWERS-1:0] power;
(* anyconst *) reg subtract;
(* anyconst *) reg [SUM-1:0] base;

wire [SUM-1:0] multiplied, shifted;
scaled_sum #(.NUMBER(NUMBER), .SUM(SUM), .POWERS(POWERS), .SUBTRACTS(SUBTRACTS), .MULTIPLY(1)) multiplies (
    .number(number), .power(power), .subtract(subtract), .base(base), .sum(multiplied)
);
scaled_sum #(.NUMBER(NUMBER), .SUM(SUM), .POWERS(POWERS), .SUBTRACTS(SUBTRACTS), .MULTIPLY(0)) shifts (
    .number(number), .power(power), .subtract(subtract), .base(base), .sum(shifted)
);

wire [POWERS-1:0] one = 1;
wire single = (power & (power - one)) == 0;
// Each power by itself: its product is one with a constant, which a solver does at once.
genvar i;
generate
    for (i = 0; i < POWERS; i = i + 1) begin : g_power
        always @* if (power == one << i) same: assert (multiplied == shifted);
    end
endgenerate
always @* if (power == 0) nothing: assert (multiplied == shifted && shifted == base);

always @* begin
    highest: cover (power == one << (POWERS - 1) && shifted != base);
    lowest: cover (power == one && single && shifted != base);
end

endmodule
