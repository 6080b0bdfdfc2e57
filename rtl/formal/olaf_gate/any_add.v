// In the place of `fp_add`: a function of the two operands that is no sum, with the same registers. The proof is
// about which rewards are compared and when, not about the bits of a difference.

`default_nettype none

module fp_add #(
    parameter EXPONENT = 11,
    parameter FRACTION = 52,
    parameter [5:0] REGISTERS = 0
) (
    input  wire                       clk,
    input  wire                       enable,
    input  wire                       keep,
    input  wire [EXPONENT+FRACTION:0] a,
    input  wire [EXPONENT+FRACTION:0] b,
    output wire [EXPONENT+FRACTION:0] sum
);

localparam WIDTH = EXPONENT + FRACTION + 1;
wire [WIDTH-1:0] step [0:6];
assign step[0] = keep ? a : a ^ {b[WIDTH-2:0], b[WIDTH-1]};
genvar i;
generate
    for (i = 0; i < 6; i = i + 1) begin : g_step
        pipe #(.WIDTH(WIDTH), .REGISTERED(REGISTERS[i])) keep (
            .clk(clk), .enable(enable), .in(step[i]), .out(step[i+1])
        );
    end
endgenerate
assign sum = step[6];

endmodule
