// Stands for the adders in the proof of `iswitch_sum`: the same registers, and a simple function in place of
// the sum. What is proved about the order of reads and writes does not depend on the function.
module fp32_lanes #(parameter LANES = 4, parameter [5:0] REGISTERS = 0) (
    input  wire                clk,
    input  wire                enable,
    input  wire [LANES-1:0]    add,
    input  wire [LANES*32-1:0] a,
    input  wire [LANES*32-1:0] b,
    output wire [LANES*32-1:0] sum,
    output wire [LANES-1:0]    not_finite
);
reg [LANES*32-1:0] first_reg, second_reg;
genvar lane;
generate
    for (lane = 0; lane < LANES; lane = lane + 1) begin : g_lane
        always @(posedge clk)
            first_reg[32*lane +: 32] <=
                a[32*lane +: 32] ^ (add[lane] ? {b[32*lane +: 31], b[32*lane+31]} : 32'd0);
    end
endgenerate
always @(posedge clk) second_reg <= first_reg;
assign sum = second_reg;
assign not_finite = 0;
endmodule
