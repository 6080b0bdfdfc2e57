// Memory with a port that writes and a port that reads. A word is at the output a cycle after its address. A
// read in the cycle of a write to the same address gives the word before.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module ram #(
    // Bits of a word.
    parameter WIDTH = 512,
    // Words; at least 2.
    parameter DEPTH = 32,
    // 1: block RAM. 0: LUT RAM.
    parameter BLOCK = 0,
    // Bits of an address.
    parameter ADDRESS = $clog2(DEPTH)
) (
    input  wire               clk,
    input  wire               write,
    input  wire [ADDRESS-1:0] write_address,
    input  wire [WIDTH-1:0]   write_data,
    // The output changes only after cycles in which `read` is high.
    input  wire               read,
    input  wire [ADDRESS-1:0] read_address,
    output wire [WIDTH-1:0]   read_data
);

generate
    if (DEPTH < 2 || ADDRESS != $clog2(DEPTH)) begin : g_illegal
        ram_needs_two_words illegal();
    end
endgenerate

reg [WIDTH-1:0] read_data_reg;
assign read_data = read_data_reg;

generate
    if (BLOCK) begin : g_block
        (* ram_style = "block" *) reg [WIDTH-1:0] word_reg [0:DEPTH-1];
        always @(posedge clk) begin
            if (write) word_reg[write_address] <= write_data;
            if (read) read_data_reg <= word_reg[read_address];
        end
    end else begin : g_lut
        (* ram_style = "distributed" *) reg [WIDTH-1:0] word_reg [0:DEPTH-1];
        always @(posedge clk) begin
            if (write) word_reg[write_address] <= write_data;
            if (read) read_data_reg <= word_reg[read_address];
        end
`ifdef FORMAL
        // For proofs: a word that the prover picks.
        (* anyconst *) reg [ADDRESS-1:0] picked;
        wire [WIDTH-1:0] picked_word = word_reg[picked];
`endif
    end
endgenerate

endmodule

`resetall
