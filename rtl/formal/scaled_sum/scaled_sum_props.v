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
(* anyconst *) reg [POWERS:0] scale;
(* anyconst *) reg [SUM-1:0] base;

wire [SUM-1:0] multiplied, shifted;
scaled_sum #(.NUMBER(NUMBER), .SUM(SUM), .POWERS(POWERS), .MULTIPLY(1)) multiplies (
    .number(number), .scale(scale), .base(base), .sum(multiplied)
);
scaled_sum #(.NUMBER(NUMBER), .SUM(SUM), .POWERS(POWERS), .MULTIPLY(0)) shifts (
    .number(number), .scale(scale), .base(base), .sum(shifted)
);

wire [POWERS:0] one = 1;
// Each power by itself: its product is one with a constant, which a solver does at once.
genvar i;
generate
    for (i = 0; i < POWERS; i = i + 1) begin : g_power
        always @* begin
            if (scale == one << i) added: assert (multiplied == shifted);
            if (scale == -(one << i)) subtracted: assert (multiplied == shifted);
        end
    end
endgenerate
always @* if (scale == 0) nothing: assert (multiplied == base && shifted == base);

always @* begin
    highest: cover (scale == one << (POWERS - 1) && shifted > base);
    lowest: cover (scale == -one && shifted < base);
end

endmodule
