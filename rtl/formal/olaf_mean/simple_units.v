// In the places of the floating-point units: simple functions with the same registers, and a division that takes
// any number of cycles. The proof is about which numbers meet when, not about their bits.

`default_nettype none

module fp_mul #(
    parameter EXPONENT = 11,
    parameter FRACTION = 52,
    parameter [5:0] REGISTERS = 0
) (
    input  wire        clk,
    input  wire        enable,
    input  wire [63:0] a,
    input  wire [63:0] b,
    output wire [63:0] product
);

reg [63:0] first, second, third;
always @(posedge clk) {first, second, third} <= {a ^ {b[31:0], b[63:32]}, first, second};
assign product = third;

endmodule

module fp_add #(
    parameter EXPONENT = 11,
    parameter FRACTION = 52,
    parameter [5:0] REGISTERS = 0
) (
    input  wire        clk,
    input  wire        enable,
    input  wire        keep,
    input  wire [63:0] a,
    input  wire [63:0] b,
    output wire [63:0] sum
);

reg [63:0] first, second;
always @(posedge clk) {first, second} <= {keep ? a : {b[62:0], b[63]} ^ a, first};
assign sum = second;

endmodule

module fp_div #(
    parameter EXPONENT = 11,
    parameter FRACTION = 52,
    parameter STEPS = 1
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        s_valid,
    output wire        s_ready,
    input  wire [63:0] a,
    input  wire [63:0] b,
    input  wire        abandon,
    output wire        m_soon,
    output wire        m_valid,
    input  wire        m_ready,
    output wire [63:0] quotient
);

(* anyseq *) reg at_once, goes_on;
(* anyseq *) reg [63:0] nothing;
reg busy = 0, last = 0, done = 0;
reg [63:0] result;
assign s_ready = abandon || !(busy || last || done);
assign m_soon = last;
assign m_valid = done;
assign quotient = done ? result : nothing;
always @(posedge clk) begin
    if (busy && !goes_on) {busy, last} <= 2'b01;
    if (last) {last, done} <= 2'b01;
    if (done && m_ready) done <= 0;
    if (abandon) {busy, last, done} <= 0;
    if (s_valid && s_ready) begin
        {busy, last, done} <= {!at_once, 1'b0, at_once};
        result <= a ^ {b[15:0], b[63:16]};
    end
    if (rst) {busy, last, done} <= 0;
end

endmodule
