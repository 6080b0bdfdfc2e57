// iSwitch's Input Arbiter with the accelerator (iSwitch §3.3, Figure 6), in the place of the input arbiter of the NetFPGA-SUME
// reference switch: whole Ethernet frames from four ports and from the host, and one stream to the output port lookup.
//
// Not built: no place-and-route tool and no board has seen this file. README.md says what to connect.
//
// tuser is that of the reference pipeline, 128 bit: length in bytes, source port and destination ports, one-hot, where bits 0,
// 2, 4 and 6 are the four network ports, and 1, 3, 5 and 7 the host's. What the module fills in:
//
//   a result         length; source: the host's first port, where the lookup learns the switch's MAC; destination: its receiver
//   a control frame  destination: the host's port beside the one that it came from
//
// Other frames keep their tuser.

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
    // Addresses of workers have to be proved: see iswitch_datapath.
    input  wire         proofs,

    // The network ports.
    input  wire [255:0] s_axis_0_tdata,
    input  wire [31:0]  s_axis_0_tkeep,
    input  wire         s_axis_0_tvalid,
    output wire         s_axis_0_tready,
    input  wire         s_axis_0_tlast,
    input  wire [127:0] s_axis_0_tuser,
    input  wire [255:0] s_axis_1_tdata,
    input  wire [31:0]  s_axis_1_tkeep,
    input  wire         s_axis_1_tvalid,
    output wire         s_axis_1_tready,
    input  wire         s_axis_1_tlast,
    input  wire [127:0] s_axis_1_tuser,
    input  wire [255:0] s_axis_2_tdata,
    input  wire [31:0]  s_axis_2_tkeep,
    input  wire         s_axis_2_tvalid,
    output wire         s_axis_2_tready,
    input  wire         s_axis_2_tlast,
    input  wire [127:0] s_axis_2_tuser,
    input  wire [255:0] s_axis_3_tdata,
    input  wire [31:0]  s_axis_3_tkeep,
    input  wire         s_axis_3_tvalid,
    output wire         s_axis_3_tready,
    input  wire         s_axis_3_tlast,
    input  wire [127:0] s_axis_3_tuser,
    // The host (DMA).
    input  wire [255:0] s_axis_4_tdata,
    input  wire [31:0]  s_axis_4_tkeep,
    input  wire         s_axis_4_tvalid,
    output wire         s_axis_4_tready,
    input  wire         s_axis_4_tlast,
    input  wire [127:0] s_axis_4_tuser,

    // To the output port lookup.
    output wire [255:0] m_axis_tdata,
    output wire [31:0]  m_axis_tkeep,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    output wire [127:0] m_axis_tuser,
    // High: the frame is a control message, for the control plane.
    output wire         m_axis_control,

    // Counters and addresses, in the clock domain of the stream.
    input  wire [13:0]  s_axil_awaddr,
    input  wire         s_axil_awvalid,
    output wire         s_axil_awready,
    input  wire [31:0]  s_axil_wdata,
    input  wire [3:0]   s_axil_wstrb,
    input  wire         s_axil_wvalid,
    output wire         s_axil_wready,
    output wire [1:0]   s_axil_bresp,
    output wire         s_axil_bvalid,
    input  wire         s_axil_bready,
    input  wire [13:0]  s_axil_araddr,
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
localparam [7:0] HOST = 8'h02;

wire [7:0]   host = s_axis_4_tuser[SOURCE +: 8];
wire [127:0] user;
wire         is_result;

iswitch_datapath #(.PORTS(4), .SLOTS(SLOTS), .USER(128)) datapath (
    .clk(axis_aclk), .rst(!axis_resetn), .epoch(epoch), .proofs(proofs),
    .s_axis_tdata({s_axis_3_tdata, s_axis_2_tdata, s_axis_1_tdata, s_axis_0_tdata}),
    .s_axis_tkeep({s_axis_3_tkeep, s_axis_2_tkeep, s_axis_1_tkeep, s_axis_0_tkeep}),
    .s_axis_tvalid({s_axis_3_tvalid, s_axis_2_tvalid, s_axis_1_tvalid, s_axis_0_tvalid}),
    .s_axis_tready({s_axis_3_tready, s_axis_2_tready, s_axis_1_tready, s_axis_0_tready}),
    .s_axis_tlast({s_axis_3_tlast, s_axis_2_tlast, s_axis_1_tlast, s_axis_0_tlast}),
    .s_axis_tuser({s_axis_3_tuser, s_axis_2_tuser, s_axis_1_tuser, s_axis_0_tuser}),
    .s_host_tdata(s_axis_4_tdata), .s_host_tkeep(s_axis_4_tkeep), .s_host_tvalid(s_axis_4_tvalid),
    .s_host_tready(s_axis_4_tready), .s_host_tlast(s_axis_4_tlast), .s_host_tuser(s_axis_4_tuser),
    .s_host_port({host[5] | host[7], host[3] | host[7]}),
    .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep), .m_axis_tvalid(m_axis_tvalid),
    .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast), .m_axis_tuser(user),
    .m_axis_result(is_result), .m_axis_control(m_axis_control),
    .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
    .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
    .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
    .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
    .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
    .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready)
);

// Of a result, the datapath says {receiver, length}. Of all other frames, what they came with.
wire [7:0] receiver = {1'b0, user[19], 1'b0, user[18], 1'b0, user[17], 1'b0, user[16]};
wire [7:0] beside = {user[SOURCE +: 7], 1'b0};
assign m_axis_tuser[15:0] = user[15:0];
assign m_axis_tuser[SOURCE +: 8] = is_result ? HOST : user[SOURCE +: 8];
assign m_axis_tuser[DESTINATION +: 8] = is_result ? receiver
    : m_axis_control ? beside : user[DESTINATION +: 8];
assign m_axis_tuser[127:DESTINATION+8] = user[127:DESTINATION+8];

wire unused = &{1'b0, host[6], host[4], host[2:0]};

endmodule

`resetall
