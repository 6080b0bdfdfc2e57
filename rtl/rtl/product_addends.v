// Two numbers whose sum is the product of two unsigned numbers. Small multipliers make parts of the product, each of a
// size that fits a DSP block: 26 by 17 bits for numbers of 53 bits. Parts that do not overlap share an addend.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module product_addends #(
    // Bits of a factor.
    parameter WIDTH = 53
) (
    input  wire [WIDTH-1:0]   a,
    input  wire [WIDTH-1:0]   b,
    // Their sum has no carry out. The last (WIDTH - 1) / 2 bits of the second one are zeros, and left out.
    output wire [2*WIDTH-1:0] first,
    output wire [2*WIDTH-1:(WIDTH-1)/2] second
);

// a is its lower part, its upper part and its topmost bit. b is three parts of one size and a top.
localparam ALL = 2*WIDTH;
localparam A0 = (WIDTH - 1) / 2;
localparam A1 = WIDTH - 1 - A0;
localparam B = (WIDTH - 1) / 3;
localparam TOP = WIDTH - 3*B;

// Illegal parameters stop the elaboration.
generate
    if (WIDTH < 4) begin : g_illegal
        product_addends_needs_four_bits illegal();
    end
endgenerate

wire [A0-1:0]  a_0 = a[A0-1:0];
wire [A1-1:0]  a_1 = a[A0 +: A1];
wire [B-1:0]   b_0 = b[B-1:0];
wire [B-1:0]   b_1 = b[B +: B];
wire [B-1:0]   b_2 = b[2*B +: B];
wire [TOP-1:0] b_3 = b[3*B +: TOP];

// A part is as wide as its two factors.
wire [A0+B-1:0]   part_00 = {{B{1'b0}}, a_0} * {{A0{1'b0}}, b_0};
wire [A0+B-1:0]   part_01 = {{B{1'b0}}, a_0} * {{A0{1'b0}}, b_1};
wire [A0+B-1:0]   part_02 = {{B{1'b0}}, a_0} * {{A0{1'b0}}, b_2};
wire [A0+TOP-1:0] part_03 = {{TOP{1'b0}}, a_0} * {{A0{1'b0}}, b_3};
wire [A1+B-1:0]   part_10 = {{B{1'b0}}, a_1} * {{A1{1'b0}}, b_0};
wire [A1+B-1:0]   part_11 = {{B{1'b0}}, a_1} * {{A1{1'b0}}, b_1};
wire [A1+B-1:0]   part_12 = {{B{1'b0}}, a_1} * {{A1{1'b0}}, b_2};
wire [A1+TOP-1:0] part_13 = {{TOP{1'b0}}, a_1} * {{A1{1'b0}}, b_3};
wire [WIDTH-1:0]  part_top = b & {WIDTH{a[WIDTH-1]}};

// Rows: parts side by side, each from its last bit on. Row 4 has parts of b's top, row 5 has b times a's top.
wire [ALL-1:0] row_0 = {{ALL-A0-A1-2*B{1'b0}}, part_11, part_00};
wire [ALL-1:B] row_1 = {{ALL-A0-A1-3*B{1'b0}}, part_12, part_01};
wire [ALL-1:2*B] row_2 = {{ALL-A0-A1-3*B-TOP{1'b0}}, part_13, part_02};
wire [ALL-1:A0] row_3 = {{ALL-A0-A1-B{1'b0}}, part_10};
wire [ALL-1:3*B] row_4 = {{ALL-A0-WIDTH{1'b0}}, part_03};
wire [ALL-1:A0+A1] row_5 = {1'b0, part_top};

// What a row has below another one passes by. So each sum is one short carry chain.
wire [ALL-1:A0] few = {row_3[ALL-1:3*B] + row_4, row_3[3*B-1:A0]};
wire [ALL-1:2*B] upper = {row_2[ALL-1:A0+A1] + row_5, row_2[A0+A1-1:2*B]};
assign first = {row_0[ALL-1:B] + row_1, row_0[B-1:0]};
assign second = {few[ALL-1:2*B] + upper, few[2*B-1:A0]};

endmodule

`resetall
