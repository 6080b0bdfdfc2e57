// A step of a pipeline: a register, or only a wire.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module pipe #(
    // Bits that pass.
    parameter WIDTH = 1,
    // 1: a register. 0: a wire, and the step before becomes one with the step behind.
    parameter REGISTERED = 1
) (
    input  wire             clk,
    // A register takes the input only in cycles in which `enable` is high.
    input  wire             enable,
    input  wire [WIDTH-1:0] in,
    output wire [WIDTH-1:0] out
);

generate
    if (REGISTERED) begin : g_register
        reg [WIDTH-1:0] out_reg;
        always @(posedge clk) if (enable) out_reg <= in;
        assign out = out_reg;
    end else begin : g_wire
        wire unused = &{1'b0, clk, enable};
        assign out = in;
    end
endgenerate

endmodule

`resetall
