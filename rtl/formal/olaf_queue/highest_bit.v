// In the place of `ram`: only the highest bit of a word is kept. In `frame_fifo` that says whether a beat is the
// last of its frame; all other data are any.

`default_nettype none

module ram #(
    parameter WIDTH = 512,
    parameter DEPTH = 32,
    parameter BLOCK = 0,
    parameter ADDRESS = $clog2(DEPTH)
) (
    input  wire               clk,
    input  wire               write,
    input  wire [ADDRESS-1:0] write_address,
    input  wire [WIDTH-1:0]   write_data,
    input  wire               read,
    input  wire [ADDRESS-1:0] read_address,
    output wire [WIDTH-1:0]   read_data
);

reg highest_reg;
reg word_reg [0:DEPTH-1];
always @(posedge clk) begin
    if (write) word_reg[write_address] <= write_data[WIDTH-1];
    if (read) highest_reg <= word_reg[read_address];
end
assign read_data = {highest_reg, {WIDTH-1{1'b0}}};
wire unused = &{1'b0, write_data};

endmodule
