// Counters of 64 bit that a host reads over AXI4-Lite (`axil_block`). Any counter may grow in any cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module axil_counters #(
    // Counters.
    parameter COUNTERS = 8,
    // Bits of what a counter grows by in a cycle.
    parameter AMOUNT = 32,
    // Bits of an address.
    parameter ADDRESS = 12,
    // What the block says of itself.
    parameter [31:0] TYPE = 32'd0,
    parameter [31:0] VERSION = 32'd0,
    parameter [31:0] NEXT = 32'd0
) (
    input  wire                       clk,
    input  wire                       rst,

    // In each cycle, every counter grows by its amount.
    input  wire [COUNTERS*AMOUNT-1:0] grow,

    // AXI4-Lite. Protection bits are not chosen for.
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

generate
    if (AMOUNT < 1 || AMOUNT > 64) begin : g_illegal
        axil_counters_need_an_amount illegal();
    end
endgenerate

reg [63:0] counter_reg [0:COUNTERS-1];
genvar counter;
generate
    for (counter = 0; counter < COUNTERS; counter = counter + 1) begin : g_counter
        wire [AMOUNT-1:0] amount = grow[AMOUNT*counter +: AMOUNT];
        always @(posedge clk)
            if (rst) counter_reg[counter] <= 0;
            else counter_reg[counter] <= counter_reg[counter] + {{64-AMOUNT{1'b0}}, amount};
    end
endgenerate

wire               reads_unused;
wire [ADDRESS-4:0] chosen;
reg [63:0]         selected;
integer i;
always @* begin
    selected = 0;
    for (i = 0; i < COUNTERS; i = i + 1)
        if (chosen == i[ADDRESS-4:0]) selected = selected | counter_reg[i];
end

axil_block #(
    .COUNTERS(COUNTERS), .ADDRESS(ADDRESS), .TYPE(TYPE), .VERSION(VERSION), .NEXT(NEXT)
) block (
    .clk(clk), .rst(rst), .reads(reads_unused), .counter(chosen), .value(selected),
    .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
    .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
    .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
    .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
    .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
    .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready)
);

`ifdef FORMAL
`include "axil_counters_props.v"
`endif

endmodule

`resetall
