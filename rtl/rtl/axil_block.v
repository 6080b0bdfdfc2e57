// A block of counters of 64 bit that a host reads over AXI4-Lite; the counters themselves are elsewhere
// (`axil_counters`, `olaf_queue_counters`). The block says what it is, so that software finds its way without a map
// of the design:
//
//   0x00  type           0x04  version
//   0x08  next: the address of the next block, 0 if there is none
//   0x0c  number of counters
//   0x10 + 8 i  low half of counter i, 0x14 + 8 i  its high half
//
// A read of a low half keeps the high half of the same instant for the read of the high half that
// follows. Addresses beyond the counters and all writes are answered with an error (SLVERR).

`resetall
`timescale 1ns / 1ps
`default_nettype none

module axil_block #(
    // Counters.
    parameter COUNTERS = 8,
    // Bits of an address.
    parameter ADDRESS = 12,
    // What the block says of itself.
    parameter [31:0] TYPE = 32'd0,
    parameter [31:0] VERSION = 32'd0,
    parameter [31:0] NEXT = 32'd0,
    // Bits of a counter's number.
    parameter COUNTER = ADDRESS - 3
) (
    input  wire                       clk,
    input  wire                       rst,

    // A low half is read in this cycle: of which counter, and the counter's value, in the same cycle. At most every
    // second cycle is one of a read.
    output wire                       reads,
    output wire [COUNTER-1:0]         counter,
    input  wire [63:0]                value,

    // AXI4-Lite. Protection bits are not asked for.
    input  wire [ADDRESS-1:0]         s_axil_awaddr,
    input  wire                       s_axil_awvalid,
    output wire                       s_axil_awready,
    input  wire [31:0]                s_axil_wdata,
    input  wire [3:0]                 s_axil_wstrb,
    input  wire                       s_axil_wvalid,
    output wire                       s_axil_wready,
    output wire [1:0]                 s_axil_bresp,
    output wire                       s_axil_bvalid,
    input  wire                       s_axil_bready,
    input  wire [ADDRESS-1:0]         s_axil_araddr,
    input  wire                       s_axil_arvalid,
    output wire                       s_axil_arready,
    output wire [31:0]                s_axil_rdata,
    output wire [1:0]                 s_axil_rresp,
    output wire                       s_axil_rvalid,
    input  wire                       s_axil_rready
);

localparam INDEX = ADDRESS - 3;
localparam [INDEX-1:0] FIRST = 2;
localparam [INDEX-1:0] END = FIRST + COUNTERS[INDEX-1:0];
localparam [1:0] OKAY = 2'b00;
localparam [1:0] SLVERR = 2'b10;

generate
    if (COUNTERS < 1 || ADDRESS < 4 || COUNTER != ADDRESS - 3 || 16 + 8*COUNTERS > (1 << ADDRESS) - 8) begin : g_illegal
        axil_block_is_too_small illegal();
    end
endgenerate

// Reads: one at a time.
reg        rvalid_reg = 0;
reg [1:0]  rresp_reg;
reg [31:0] rdata_reg, high_reg;

wire [INDEX-1:0] index = s_axil_araddr[ADDRESS-1:3];
wire high = s_axil_araddr[2];
wire aligned = s_axil_araddr[1:0] == 0;

wire takes = s_axil_arvalid && s_axil_arready;
wire of_counter = aligned && index >= FIRST && index < END;

assign reads = takes && of_counter && !high;
assign counter = index - FIRST;

assign s_axil_arready = !rvalid_reg;
assign s_axil_rvalid = rvalid_reg;
assign s_axil_rresp = rresp_reg;
assign s_axil_rdata = rdata_reg;

always @(posedge clk) begin
    if (s_axil_rready) rvalid_reg <= 1'b0;
    if (takes) begin
        rvalid_reg <= 1'b1;
        rresp_reg <= aligned && index < END ? OKAY : SLVERR;
        if (!aligned || index >= END) rdata_reg <= 0;
        else if (index == 0) rdata_reg <= high ? VERSION : TYPE;
        else if (index == 1) rdata_reg <= high ? COUNTERS : NEXT;
        else rdata_reg <= high ? high_reg : value[31:0];
    end
    if (reads) high_reg <= value[63:32];
    if (rst) rvalid_reg <= 1'b0;
end

// Writes: the address and the word may come in any order. Both are taken at once, and refused.
reg bvalid_reg = 0;
wire takes_write = s_axil_awvalid && s_axil_wvalid && !bvalid_reg;

assign s_axil_awready = takes_write;
assign s_axil_wready = takes_write;
assign s_axil_bvalid = bvalid_reg;
assign s_axil_bresp = SLVERR;

always @(posedge clk) begin
    if (s_axil_bready) bvalid_reg <= 1'b0;
    if (takes_write) bvalid_reg <= 1'b1;
    if (rst) bvalid_reg <= 1'b0;
end

wire unused = &{1'b0, s_axil_awaddr, s_axil_wdata, s_axil_wstrb};

endmodule

`resetall
