// iSwitch's accelerator beside the output queues of the NetFPGA-SUME reference switch (iSwitch §3.3, Figure 6).
//
// Not built: no place-and-route tool and no board has seen this file. README.md says what to connect.
//
// The input arbiter gives this module the tagged frames (iSwitch §3.3: by ToS) as UDP payloads; results go
// back to the arbiter as one more receive queue. tuser is that of the reference pipeline, 128 bit: length in
// bytes, source port and destination ports, one-hot, where bits 0, 2, 4 and 6 are the four network ports.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_sume #(
    // Packets that a member may be ahead of its first missing result; a power of two.
    parameter SLOTS = 32
) (
    // 200 MHz in the reference switch.
    input  wire         axis_aclk,
    input  wire         axis_resetn,
    // Number of the first generation.
    input  wire [7:0]   epoch,

    input  wire [255:0] s_axis_tdata,
    input  wire [31:0]  s_axis_tkeep,
    input  wire         s_axis_tvalid,
    output wire         s_axis_tready,
    input  wire         s_axis_tlast,
    input  wire [127:0] s_axis_tuser,
    // Of the frame's IP header: the ECN mark; the ToS value of control messages, not of data.
    input  wire         s_axis_marked,
    input  wire         s_axis_control,

    output wire [255:0] m_axis_tdata,
    output wire [31:0]  m_axis_tkeep,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    // The destination ports alone; all else is zero.
    output wire [127:0] m_axis_tuser,
    output wire         m_axis_marked,
    // High: the frame is a control message, for the control plane.
    output wire         m_axis_control,

    // Counters, in the clock domain of the stream.
    input  wire [11:0]  s_axil_awaddr,
    input  wire         s_axil_awvalid,
    output wire         s_axil_awready,
    input  wire [31:0]  s_axil_wdata,
    input  wire [3:0]   s_axil_wstrb,
    input  wire         s_axil_wvalid,
    output wire         s_axil_wready,
    output wire [1:0]   s_axil_bresp,
    output wire         s_axil_bvalid,
    input  wire         s_axil_bready,
    input  wire [11:0]  s_axil_araddr,
    input  wire         s_axil_arvalid,
    output wire         s_axil_arready,
    output wire [31:0]  s_axil_rdata,
    output wire [1:0]   s_axil_rresp,
    output wire         s_axil_rvalid,
    input  wire         s_axil_rready
);

// Places in tuser.
localparam SOURCE = 16;
localparam DESTINATION = 24;

wire [7:0] source = s_axis_tuser[SOURCE +: 8];
wire [1:0] port = {source[4] | source[6], source[2] | source[6]};
wire [3:0] receivers;
wire unused = &{1'b0, s_axis_tuser[SOURCE-1:0], s_axis_tuser[127:SOURCE+8],
    source[7], source[5], source[3], source[1:0]};

iswitch_accelerator #(.PORTS(4), .SLOTS(SLOTS)) accelerator (
    .clk(axis_aclk), .rst(!axis_resetn), .epoch(epoch),
    .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep), .s_axis_tvalid(s_axis_tvalid),
    .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),
    .s_axis_tuser({s_axis_marked, s_axis_control, port}),
    .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep), .m_axis_tvalid(m_axis_tvalid),
    .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast),
    .m_axis_tuser({m_axis_marked, m_axis_control, receivers}),
    .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
    .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
    .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
    .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
    .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
    .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready)
);

assign m_axis_tuser[DESTINATION-1:0] = {DESTINATION{1'b0}};
assign m_axis_tuser[DESTINATION +: 8] =
    {1'b0, receivers[3], 1'b0, receivers[2], 1'b0, receivers[1], 1'b0, receivers[0]};
assign m_axis_tuser[127:DESTINATION+8] = {120-DESTINATION{1'b0}};

endmodule

`resetall
