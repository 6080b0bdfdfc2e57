// The addresses of those to whom `udp_wrap` sends, and of the switch itself: the control plane writes the table over
// AXI4-Lite, when it has answered a Join (iSwitch §3.3: the membership table has each worker's addresses).
//
//   0x00  type           0x04  version
//   0x08  next: the address of the next block, 0 if there is none
//   0x0c  number of receivers
//   0x10  the switch itself, 0x20 + 16 i  receiver i. Each has four words:
//         +0  MAC address, its first two bytes in the low half    +4  MAC address, its other four bytes
//         +8  IPv4 address                                        +c  UDP port in the low half; bit 16: the entry is valid
//
// The write of the last word takes the whole entry at once, with the first three words as they were written last, whatever
// entry they were written to. So no datagram gets a part of an address. Reads give what datagrams get. A write to the first
// 16 bytes, beyond the table, or of a part of a word is answered with an error (SLVERR).

`resetall
`timescale 1ns / 1ps
`default_nettype none

module udp_receivers #(
    // Receivers; at least 2.
    parameter PORTS = 4,
    // Bits of an address.
    parameter ADDRESS = 12,
    // What the block says of itself.
    parameter [31:0] TYPE = 32'd0,
    parameter [31:0] VERSION = 32'd0,
    parameter [31:0] NEXT = 32'd0,
    // Bits of a receiver's number.
    parameter PORT = $clog2(PORTS)
) (
    input  wire               clk,
    input  wire               rst,

    // The switch itself: {MAC, IPv4 address, UDP port}. All zeros until it is written.
    output wire [95:0]        sender,
    // The entry of a receiver, in the same cycle.
    input  wire [PORT-1:0]    lookup,
    output wire               entry_valid,
    output wire [95:0]        entry,

    // AXI4-Lite. Protection bits are not asked for.
    input  wire [ADDRESS-1:0] s_axil_awaddr,
    input  wire               s_axil_awvalid,
    output wire               s_axil_awready,
    input  wire [31:0]        s_axil_wdata,
    input  wire [3:0]         s_axil_wstrb,
    input  wire               s_axil_wvalid,
    output wire               s_axil_wready,
    output wire [1:0]         s_axil_bresp,
    output wire               s_axil_bvalid,
    input  wire               s_axil_bready,
    input  wire [ADDRESS-1:0] s_axil_araddr,
    input  wire               s_axil_arvalid,
    output wire               s_axil_arready,
    output wire [31:0]        s_axil_rdata,
    output wire [1:0]         s_axil_rresp,
    output wire               s_axil_rvalid,
    input  wire               s_axil_rready
);

// Entry 0 is the switch itself.
localparam ENTRIES = PORTS + 1;
localparam NUMBER = ADDRESS - 4;
localparam [31:0] COUNT = PORTS;
localparam [1:0] OKAY = 2'b00;
localparam [1:0] SLVERR = 2'b10;

generate
    if (PORTS < 2 || PORT != $clog2(PORTS) || 16*(ENTRIES + 1) > 1 << ADDRESS) begin : g_illegal
        udp_receivers_does_not_fit illegal();
    end
endgenerate

reg [95:0]        entry_reg [0:ENTRIES-1];
reg [ENTRIES-1:0] valid_reg = 0;
// The words of an entry that is being written.
reg [47:0]        mac_reg;
reg [31:0]        ip_reg;

assign sender = valid_reg[0] ? entry_reg[0] : 96'd0;
reg        found_valid;
reg [95:0] found;
integer i;
always @* begin
    {found_valid, found} = 0;
    for (i = 0; i < PORTS; i = i + 1)
        if (lookup == i[PORT-1:0]) {found_valid, found} = {valid_reg[i+1], entry_reg[i+1]};
end
assign {entry_valid, entry} = {found_valid, found};

// Writes: the address and the word may come in any order. Both are taken at once.
reg       bvalid_reg = 0;
reg [1:0] bresp_reg;
wire      writes = s_axil_awvalid && s_axil_wvalid && !bvalid_reg;
wire [NUMBER-1:0] write_number = s_axil_awaddr[ADDRESS-1:4] - 1'b1;
wire      is_entry = s_axil_awaddr[ADDRESS-1:4] != 0 && write_number < ENTRIES[NUMBER-1:0]
    && s_axil_awaddr[1:0] == 0 && &s_axil_wstrb;
wire      takes = writes && is_entry && s_axil_awaddr[3:2] == 3;

assign s_axil_awready = writes;
assign s_axil_wready = writes;
assign s_axil_bvalid = bvalid_reg;
assign s_axil_bresp = bresp_reg;

integer k;
always @(posedge clk) begin
    if (s_axil_bready) bvalid_reg <= 1'b0;
    if (writes) begin
        bvalid_reg <= 1'b1;
        bresp_reg <= is_entry ? OKAY : SLVERR;
        if (is_entry && s_axil_awaddr[3:2] == 0) mac_reg[47:32] <= s_axil_wdata[15:0];
        if (is_entry && s_axil_awaddr[3:2] == 1) mac_reg[31:0] <= s_axil_wdata;
        if (is_entry && s_axil_awaddr[3:2] == 2) ip_reg <= s_axil_wdata;
    end
    for (k = 0; k < ENTRIES; k = k + 1)
        if (takes && write_number == k[NUMBER-1:0]) begin
            entry_reg[k] <= {mac_reg, ip_reg, s_axil_wdata[15:0]};
            valid_reg[k] <= s_axil_wdata[16];
        end
    if (rst) begin
        bvalid_reg <= 1'b0;
        valid_reg <= 0;
    end
end

// Reads: one at a time.
reg        rvalid_reg = 0;
reg [1:0]  rresp_reg;
reg [31:0] rdata_reg;
wire       reads = s_axil_arvalid && !rvalid_reg;
wire [NUMBER-1:0] read_number = s_axil_araddr[ADDRESS-1:4] - 1'b1;
wire       is_head = s_axil_araddr[ADDRESS-1:4] == 0;
wire       is_there = s_axil_araddr[1:0] == 0 && (is_head || read_number < ENTRIES[NUMBER-1:0]);
reg [127:0] row;
integer e;
always @* begin
    row = is_head ? {COUNT, NEXT, VERSION, TYPE} : 128'd0;
    for (e = 0; e < ENTRIES; e = e + 1)
        if (!is_head && read_number == e[NUMBER-1:0] && valid_reg[e])
            row = {15'd0, 1'b1, entry_reg[e][15:0], entry_reg[e][47:16], entry_reg[e][79:48],
                   16'd0, entry_reg[e][95:80]};
end

assign s_axil_arready = !rvalid_reg;
assign s_axil_rvalid = rvalid_reg;
assign s_axil_rresp = rresp_reg;
assign s_axil_rdata = rdata_reg;

always @(posedge clk) begin
    if (s_axil_rready) rvalid_reg <= 1'b0;
    if (reads) begin
        rvalid_reg <= 1'b1;
        rresp_reg <= is_there ? OKAY : SLVERR;
        rdata_reg <= is_there ? row[32*s_axil_araddr[3:2] +: 32] : 32'd0;
    end
    if (rst) rvalid_reg <= 1'b0;
end

`ifdef FORMAL
`include "udp_receivers_props.v"
`endif

endmodule

`resetall
