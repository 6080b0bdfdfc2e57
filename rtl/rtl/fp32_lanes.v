// Adds the f32 lanes of one beat to those of another, and tells which results are not finite.
//
// A lane is four bytes of the beat, little-endian, as in the payload of an update. A lane that is
// not kept passes `a` on: the header of an update and the bytes behind its last lane stand in the
// same beats as lanes.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp32_lanes #(
    // Lanes of a beat: 16 for 512 bit (OLAF §12.1), 8 for 256 bit (iSwitch §3.3).
    parameter LANES = 16,
    // Which of an adder's six steps have a register behind them: see `fp_add`.
    parameter [5:0] REGISTERS = 6'b111111
) (
    input  wire                clk,
    // The registers move only in cycles in which `enable` is high.
    input  wire                enable,
    // For each lane: add. Otherwise the lane of `a` passes on.
    input  wire [LANES-1:0]    add,
    input  wire [LANES*32-1:0] a,
    input  wire [LANES*32-1:0] b,
    // The result of what entered as many enabled edges before as REGISTERS has ones.
    output wire [LANES*32-1:0] sum,
    // For each lane: added, and the sum is infinite or not a number. The sum of two finite numbers
    // and of one that is not is in both cases one of these, so nothing else has to be checked.
    output wire [LANES-1:0]    not_finite
);

generate
    if (LANES < 1) begin : g_illegal
        fp32_lanes_needs_a_lane illegal();
    end
endgenerate

genvar lane, step;
generate
    for (lane = 0; lane < LANES; lane = lane + 1) begin : g_lane
        wire [31:0] total;
        fp32_add #(.REGISTERS(REGISTERS)) adder (
            .clk(clk), .enable(enable), .keep(!add[lane]), .a(a[32*lane +: 32]), .b(b[32*lane +: 32]),
            .sum(total)
        );

        // The lane's bit of `add`, beside the adder.
        wire [6:0] beside;
        assign beside[0] = add[lane];
        for (step = 0; step < 6; step = step + 1) begin : g_step
            pipe #(.WIDTH(1), .REGISTERED(REGISTERS[step])) beside_keep (
                .clk(clk), .enable(enable), .in(beside[step]), .out(beside[step+1])
            );
        end

        assign sum[32*lane +: 32] = total;
        assign not_finite[lane] = beside[6] && (&total[30:23]);
    end
endgenerate

endmodule

`resetall
