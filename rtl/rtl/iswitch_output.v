// The output of the accelerator: beats wait here until the network takes them. The writer knows how much room there
// is and never writes more: `left` tells it of each beat that has left the memory.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_output #(
    // Bits of a beat with all that belongs to it.
    parameter WIDTH = 294,
    // Beats that wait; a power of two.
    parameter DEPTH = 128
) (
    input  wire             clk,
    input  wire             rst,

    input  wire             s_valid,
    input  wire [WIDTH-1:0] s_beat,
    output wire             left,

    output wire             m_valid,
    input  wire             m_ready,
    output wire [WIDTH-1:0] m_beat
);

localparam ADDRESS = $clog2(DEPTH);

generate
    if (DEPTH < 2 || DEPTH != (1 << ADDRESS)) begin : g_illegal
        iswitch_output_needs_a_power_of_two illegal();
    end
endgenerate

reg [WIDTH-1:0]   beat_mem [0:DEPTH-1];
reg [WIDTH-1:0]   beat_reg;
reg               valid_reg = 0;
reg [ADDRESS-1:0] write_reg = 0, read_reg = 0;
reg [ADDRESS:0]   used_reg = 0;

wire reads = used_reg != 0 && (!valid_reg || m_ready);
assign left = reads;
assign m_valid = valid_reg;
assign m_beat = beat_reg;

always @(posedge clk) begin
    if (s_valid) beat_mem[write_reg] <= s_beat;
    if (s_valid) write_reg <= write_reg + 1'b1;
    if (reads) beat_reg <= beat_mem[read_reg];
    if (reads) read_reg <= read_reg + 1'b1;
    if (m_ready) valid_reg <= 1'b0;
    if (reads) valid_reg <= 1'b1;
    used_reg <= used_reg + {{ADDRESS{1'b0}}, s_valid} - {{ADDRESS{1'b0}}, reads};
    if (rst) begin
        valid_reg <= 1'b0;
        write_reg <= 0;
        read_reg <= 0;
        used_reg <= 0;
    end
end

`ifdef FORMAL
`include "iswitch_output_props.v"
`endif

endmodule

`resetall
