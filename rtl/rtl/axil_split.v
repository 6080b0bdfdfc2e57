// Gives several blocks of 4 KiB one AXI4-Lite port: block i has the addresses from 4,096 i on. Addresses beyond the last
// block are answered with an error (DECERR). One read and one write at a time.
//
// A block has to take the address and the word of a write in the same cycle, as `axil_block` and `udp_receivers` do.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module axil_split #(
    // Blocks; at least 2.
    parameter BLOCKS = 3,
    // Bits of an address: 12 of a block, and at least one.
    parameter ADDRESS = 12 + $clog2(BLOCKS)
) (
    input  wire                 clk,
    input  wire                 rst,

    // AXI4-Lite. Protection bits are not asked for.
    input  wire [ADDRESS-1:0]   s_axil_awaddr,
    input  wire                 s_axil_awvalid,
    output wire                 s_axil_awready,
    input  wire [31:0]          s_axil_wdata,
    input  wire [3:0]           s_axil_wstrb,
    input  wire                 s_axil_wvalid,
    output wire                 s_axil_wready,
    output wire [1:0]           s_axil_bresp,
    output wire                 s_axil_bvalid,
    input  wire                 s_axil_bready,
    input  wire [ADDRESS-1:0]   s_axil_araddr,
    input  wire                 s_axil_arvalid,
    output wire                 s_axil_arready,
    output wire [31:0]          s_axil_rdata,
    output wire [1:0]           s_axil_rresp,
    output wire                 s_axil_rvalid,
    input  wire                 s_axil_rready,

    // The blocks. All have the same address and word.
    output wire [11:0]          m_axil_awaddr,
    output wire [BLOCKS-1:0]    m_axil_awvalid,
    input  wire [BLOCKS-1:0]    m_axil_awready,
    output wire [31:0]          m_axil_wdata,
    output wire [3:0]           m_axil_wstrb,
    output wire [BLOCKS-1:0]    m_axil_wvalid,
    input  wire [BLOCKS-1:0]    m_axil_wready,
    input  wire [BLOCKS*2-1:0]  m_axil_bresp,
    input  wire [BLOCKS-1:0]    m_axil_bvalid,
    output wire [BLOCKS-1:0]    m_axil_bready,
    output wire [11:0]          m_axil_araddr,
    output wire [BLOCKS-1:0]    m_axil_arvalid,
    input  wire [BLOCKS-1:0]    m_axil_arready,
    input  wire [BLOCKS*32-1:0] m_axil_rdata,
    input  wire [BLOCKS*2-1:0]  m_axil_rresp,
    input  wire [BLOCKS-1:0]    m_axil_rvalid,
    output wire [BLOCKS-1:0]    m_axil_rready
);

localparam [1:0] DECERR = 2'b11;

generate
    if (BLOCKS < 2 || ADDRESS < 12 + $clog2(BLOCKS)) begin : g_illegal
        axil_split_needs_two_blocks illegal();
    end
endgenerate

assign m_axil_awaddr = s_axil_awaddr[11:0];
assign m_axil_wdata = s_axil_wdata;
assign m_axil_wstrb = s_axil_wstrb;
assign m_axil_araddr = s_axil_araddr[11:0];

// Of each request: its block, a bit each; the blocks that owe an answer; this module owes it.
wire [BLOCKS-1:0] write_block, read_block;
reg  [BLOCKS-1:0] writing_reg = 0, reading_reg = 0;
reg               write_lost_reg = 0, read_lost_reg = 0;
genvar block;
generate
    for (block = 0; block < BLOCKS; block = block + 1) begin : g_block
        assign write_block[block] = s_axil_awaddr[ADDRESS-1:12] == block;
        assign read_block[block] = s_axil_araddr[ADDRESS-1:12] == block;
    end
endgenerate

wire write_free = writing_reg == 0 && !write_lost_reg;
wire write_comes = s_axil_awvalid && s_axil_wvalid && write_free;
wire write_taken = write_comes && (write_block == 0 || (write_block & m_axil_awready) != 0);
assign m_axil_awvalid = write_comes ? write_block : 0;
assign m_axil_wvalid = write_comes ? write_block : 0;
assign s_axil_awready = write_taken;
assign s_axil_wready = write_taken;
assign s_axil_bvalid = write_lost_reg || (writing_reg & m_axil_bvalid) != 0;
assign m_axil_bready = s_axil_bready ? writing_reg : 0;

wire read_free = reading_reg == 0 && !read_lost_reg;
wire read_comes = s_axil_arvalid && read_free;
wire read_taken = read_comes && (read_block == 0 || (read_block & m_axil_arready) != 0);
assign m_axil_arvalid = read_comes ? read_block : 0;
assign s_axil_arready = read_taken;
assign s_axil_rvalid = read_lost_reg || (reading_reg & m_axil_rvalid) != 0;
assign m_axil_rready = s_axil_rready ? reading_reg : 0;

reg [1:0]  bresp, rresp;
reg [31:0] rdata;
integer i;
always @* begin
    bresp = write_lost_reg ? DECERR : 2'b00;
    rresp = read_lost_reg ? DECERR : 2'b00;
    rdata = 0;
    for (i = 0; i < BLOCKS; i = i + 1) begin
        if (writing_reg[i]) bresp = bresp | m_axil_bresp[2*i +: 2];
        if (reading_reg[i]) rresp = rresp | m_axil_rresp[2*i +: 2];
        if (reading_reg[i]) rdata = rdata | m_axil_rdata[32*i +: 32];
    end
end
assign s_axil_bresp = bresp;
assign s_axil_rresp = rresp;
assign s_axil_rdata = rdata;

always @(posedge clk) begin
    if (s_axil_bvalid && s_axil_bready) {writing_reg, write_lost_reg} <= 0;
    if (write_taken) {writing_reg, write_lost_reg} <= {write_block, write_block == 0};
    if (s_axil_rvalid && s_axil_rready) {reading_reg, read_lost_reg} <= 0;
    if (read_taken) {reading_reg, read_lost_reg} <= {read_block, read_block == 0};
    if (rst) {writing_reg, write_lost_reg, reading_reg, read_lost_reg} <= 0;
end

wire unused = &{1'b0, m_axil_wready};

`ifdef FORMAL
`include "axil_split_props.v"
`endif

endmodule

`resetall
