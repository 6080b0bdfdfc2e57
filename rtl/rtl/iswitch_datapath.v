// The whole way of iSwitch's Figure 6, for Ethernet frames: Input Arbiter, Separator, accelerator, the results' headers, and
// back through the arbiter to Packet Process.
//
//                  +-- s_host, to the switch itself --+   +-> control frames, whole --+
//                  |                                  v   |                           v
//   s_axis -> arbiter -> (tagged) -> choice of two -> strip -> accelerator -> wrap -> choice of three <- s_host, others
//                ^   +-> (all else, and what comes back) -> m_axis                    |
//                +--------------------------------------------------------------------+
//
// A control frame of a port goes two ways: to the accelerator, which obeys it, and to Packet Process, byte for byte, for the
// control plane, which answers it. It may get there before the accelerator obeyed; what a worker sends on the answer is
// behind the control frame in any case.
//
// Frames of the control plane come from `s_host`. A frame to the switch's own MAC address is for the accelerator, in the name
// of the port `s_host_port`: a Halt, a SetH, with `proofs` also a Join whose number is right. All others pass to Packet Process, whatever their ToS: answers to workers.
//
// AXI4-Lite, three blocks of 4 KiB: the accelerator's counters; those of this way; the addresses (`udp_receivers`). The
// counters of this way, in this order: frames to the accelerator by their fate (`udp_strip`: framing, no_datagram, fragment,
// checksum, length, too_long, passed); copies of control frames, and control frames too long for a copy; results by their
// fate (`udp_wrap`: framing, too_long, no_receiver, kept); datagrams sent; receivers without an address.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_datapath #(
    // Ports, places and vectors: see `iswitch_accelerator`.
    parameter PORTS = 4,
    parameter SLOTS = 32,
    parameter VECTORS = PORTS,
    // 32-bit lanes of a beat: 8 for 256 bit, 16 for 512.
    parameter LANES = 8,
    // Beats of the longest payload: 46 for 366 floats.
    parameter BEATS = 46,
    // Beats of frames that wait before and behind the accelerator, and of control frames: powers of two.
    parameter DEPTH = 128,
    parameter COPIES = 64,
    // 1: these wait in block RAM. 0: LUT RAM.
    parameter BLOCK = 1,
    // Bits of tuser, which passes with a frame. At least 16 + PORTS.
    parameter USER = 128,
    // Bits of a port's number.
    parameter PORT = $clog2(PORTS)
) (
    input  wire                      clk,
    input  wire                      rst,
    // Number of the first generation.
    input  wire [7:0]                epoch,
    // Addresses of workers have to be proved: Joins of ports go to the control plane alone, Joins of the host are obeyed.
    input  wire                      proofs,

    // The Rx queues, port 0 lowest.
    input  wire [PORTS*LANES*32-1:0] s_axis_tdata,
    input  wire [PORTS*LANES*4-1:0]  s_axis_tkeep,
    input  wire [PORTS-1:0]          s_axis_tvalid,
    output wire [PORTS-1:0]          s_axis_tready,
    input  wire [PORTS-1:0]          s_axis_tlast,
    input  wire [PORTS*USER-1:0]     s_axis_tuser,

    // From the control plane. The port stays within a frame.
    input  wire [LANES*32-1:0]       s_host_tdata,
    input  wire [LANES*4-1:0]        s_host_tkeep,
    input  wire                      s_host_tvalid,
    output wire                      s_host_tready,
    input  wire                      s_host_tlast,
    input  wire [USER-1:0]           s_host_tuser,
    input  wire [PORT-1:0]           s_host_port,

    // To Packet Process. A result has {the port's bit, bytes of the frame} in tuser, all other frames what they came with.
    output wire [LANES*32-1:0]       m_axis_tdata,
    output wire [LANES*4-1:0]        m_axis_tkeep,
    output wire                      m_axis_tvalid,
    input  wire                      m_axis_tready,
    output wire                      m_axis_tlast,
    output wire [USER-1:0]           m_axis_tuser,
    // The frame is a result; a control frame that the accelerator got, too, for the control plane.
    output wire                      m_axis_result,
    output wire                      m_axis_control,

    input  wire [13:0]               s_axil_awaddr,
    input  wire                      s_axil_awvalid,
    output wire                      s_axil_awready,
    input  wire [31:0]               s_axil_wdata,
    input  wire [3:0]                s_axil_wstrb,
    input  wire                      s_axil_wvalid,
    output wire                      s_axil_wready,
    output wire [1:0]                s_axil_bresp,
    output wire                      s_axil_bvalid,
    input  wire                      s_axil_bready,
    input  wire [13:0]               s_axil_araddr,
    input  wire                      s_axil_arvalid,
    output wire                      s_axil_arready,
    output wire [31:0]               s_axil_rdata,
    output wire [1:0]                s_axil_rresp,
    output wire                      s_axil_rvalid,
    input  wire                      s_axil_rready
);

localparam DATA = LANES*32;
localparam QUEUE = $clog2(PORTS + 1);
localparam TAGGED = PORT + 3;
// ToS of a result: class 0x23, and ECT(0) or the mark (olaf-engine/src/switch/iswitch/outbox.rs).
localparam [7:0] RESULT = 8'h8e;
localparam [7:0] MARKED = 8'h8f;
localparam [5:0] CONTROL = 6'h2b;

generate
    if (USER < 16 + PORTS || PORT != $clog2(PORTS)) begin : g_illegal
        iswitch_datapath_needs_length_and_port_in_tuser illegal();
    end
endgenerate

// ---- The arbiter. Its tuser is {result, control, USER}.

wire [DATA-1:0]   back_data, tagged_data;
wire [DATA/8-1:0] back_keep, tagged_keep;
wire              back_valid, back_ready, back_last, tagged_valid, tagged_ready, tagged_last;
wire [USER+1:0]   back_user;
wire [USER+QUEUE+3:0] tagged_user;
wire [PORTS*(USER+2)-1:0] port_users;
genvar port;
generate
    for (port = 0; port < PORTS; port = port + 1) begin : g_port
        assign port_users[(USER+2)*port +: USER+2] = {2'b00, s_axis_tuser[USER*port +: USER]};
    end
endgenerate

iswitch_input_arbiter #(.PORTS(PORTS), .LANES(LANES), .USER(USER + 2)) arbiter (
    .clk(clk), .rst(rst),
    .s_axis_tdata({back_data, s_axis_tdata}), .s_axis_tkeep({back_keep, s_axis_tkeep}),
    .s_axis_tvalid({back_valid, s_axis_tvalid}), .s_axis_tready({back_ready, s_axis_tready}),
    .s_axis_tlast({back_last, s_axis_tlast}), .s_axis_tuser({back_user, port_users}),
    .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep), .m_axis_tvalid(m_axis_tvalid),
    .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast),
    .m_axis_tuser({m_axis_result, m_axis_control, m_axis_tuser}),
    .m_tagged_tdata(tagged_data), .m_tagged_tkeep(tagged_keep), .m_tagged_tvalid(tagged_valid),
    .m_tagged_tready(tagged_ready), .m_tagged_tlast(tagged_last), .m_tagged_tuser(tagged_user)
);

// ---- Frames of the control plane.

wire [95:0] sender;
wire [47:0] own_mac = sender[95:48];
reg         inside_reg = 0, to_switch_reg, host_control_reg, host_marked_reg;
wire        to_switch = inside_reg ? to_switch_reg : s_host_tdata[47:0] == {
    own_mac[7:0], own_mac[15:8], own_mac[23:16], own_mac[31:24], own_mac[39:32], own_mac[47:40]};
wire [7:0]  host_tos = s_host_tdata[8*15 +: 8];
wire        host_control = inside_reg ? host_control_reg : host_tos[7:2] == CONTROL;
wire        host_marked = inside_reg ? host_marked_reg : &host_tos[1:0];
wire        host_taken, host_returns;
assign s_host_tready = to_switch ? host_taken : host_returns;

always @(posedge clk) begin
    if (s_host_tvalid && s_host_tready) begin
        inside_reg <= !s_host_tlast;
        {to_switch_reg, host_control_reg, host_marked_reg} <= {to_switch, host_control, host_marked};
    end
    if (rst) inside_reg <= 1'b0;
end

// ---- Frames to the accelerator: {copied, marked, control, port}. Those of ports are copied if they are control frames.

localparam WAY = TAGGED + 9*LANES*4 + 1;
wire [TAGGED-1:0] way_user;
wire [DATA-1:0]   way_data;
wire [DATA/8-1:0] way_keep;
wire              way_valid, way_last, way_queue, strip_ready, copy_ready;
wire              arbiter_control = tagged_user[QUEUE];
wire [USER-1:0]   arbiter_user = tagged_user[QUEUE+2 +: USER];
wire [USER-1:0]   way_arbiter_user;

wire [2*(WAY+USER)-1:0] way_beats = {
    s_host_tuser, 1'b0, host_marked, host_control, s_host_port, s_host_tdata, s_host_tkeep, s_host_tlast,
    arbiter_user, arbiter_control, tagged_user[QUEUE+1:QUEUE], tagged_user[PORT-1:0], tagged_data,
    tagged_keep, tagged_last};
wire is_copied = way_user[PORT+2];
wire way_ready = strip_ready && (!is_copied || copy_ready);

iswitch_choice #(.QUEUES(2), .WIDTH(WAY + USER)) way (
    .clk(clk), .rst(rst),
    .s_valid({s_host_tvalid && to_switch, tagged_valid}), .s_ready({host_taken, tagged_ready}),
    .s_beat(way_beats), .m_valid(way_valid), .m_ready(way_ready),
    .m_beat({way_arbiter_user, way_user, way_data, way_keep, way_last}), .m_queue(way_queue)
);

wire [DATA-1:0]   payload_data;
wire [DATA/8-1:0] payload_keep;
wire              payload_valid, payload_ready, payload_last;
wire [PORT+58:0]  payload_user;
wire [6:0]        frame_fate;

udp_strip #(.DATA(DATA), .USER(PORT + 3), .DEPTH(DEPTH), .BLOCK(BLOCK)) strip (
    .clk(clk), .rst(rst),
    .s_axis_tdata(way_data), .s_axis_tkeep(way_keep),
    .s_axis_tvalid(way_valid && (!is_copied || copy_ready)), .s_axis_tready(strip_ready),
    .s_axis_tlast(way_last), .s_axis_tuser({way_queue, way_user[PORT+1:0]}),
    .m_axis_tdata(payload_data), .m_axis_tkeep(payload_keep), .m_axis_tvalid(payload_valid),
    .m_axis_tready(payload_ready), .m_axis_tlast(payload_last), .m_axis_tuser(payload_user),
    .fate(frame_fate)
);

wire                     copy_valid, copy_returns, copy_last, copy_too_long;
wire [DATA-1:0]          copy_data;
wire [DATA/8-1:0]        copy_keep;
wire [USER-1:0]          copy_user;
wire                     copies = way_valid && is_copied && way_ready;

frame_store #(.WIDTH(USER + 9*LANES*4 + 1), .DEPTH(COPIES), .BLOCK(BLOCK)) control_frames (
    .clk(clk), .rst(rst),
    .write(copies), .write_ready(copy_ready),
    .write_beat({way_arbiter_user, way_data, way_keep, way_last}),
    .finish(copies && way_last), .keep(1'b1), .too_long(copy_too_long),
    .m_valid(copy_valid), .m_ready(copy_returns),
    .m_beat({copy_user, copy_data, copy_keep, copy_last})
);

// ---- The accelerator. Its control messages have gone their way as whole frames.

wire [DATA-1:0]   result_data, sent_data;
wire [DATA/8-1:0] result_keep, sent_keep;
wire              result_valid, result_ready, result_last, sent_valid, sent_ready, sent_last;
wire [PORTS+1:0]  result_user;
wire [PORTS+15:0] sent_user;
wire              is_control = result_user[PORTS];
wire [7:0]        result_tos = result_user[PORTS+1] ? MARKED : RESULT;

// Of the blocks: {addresses, this way, accelerator}.
wire [11:0]  awaddr, araddr;
wire [31:0]  wdata;
wire [3:0]   wstrb;
wire [2:0]   awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
wire [5:0]   bresp, rresp;
wire [95:0]  rdata;

iswitch_accelerator #(
    .PORTS(PORTS), .SLOTS(SLOTS), .VECTORS(VECTORS), .LANES(LANES), .BEATS(BEATS), .NEXT(32'h1000)
) accelerator (
    .clk(clk), .rst(rst), .epoch(epoch), .proofs(proofs),
    .s_axis_tdata(payload_data), .s_axis_tkeep(payload_keep), .s_axis_tvalid(payload_valid),
    .s_axis_tready(payload_ready), .s_axis_tlast(payload_last), .s_axis_tuser(payload_user[PORT+2:0]),
    .m_axis_tdata(result_data), .m_axis_tkeep(result_keep), .m_axis_tvalid(result_valid),
    .m_axis_tready(result_ready || is_control), .m_axis_tlast(result_last),
    .m_axis_tuser(result_user),
    .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid[0]), .s_axil_awready(awready[0]),
    .s_axil_wdata(wdata), .s_axil_wstrb(wstrb), .s_axil_wvalid(wvalid[0]), .s_axil_wready(wready[0]),
    .s_axil_bresp(bresp[1:0]), .s_axil_bvalid(bvalid[0]), .s_axil_bready(bready[0]),
    .s_axil_araddr(araddr), .s_axil_arvalid(arvalid[0]), .s_axil_arready(arready[0]),
    .s_axil_rdata(rdata[31:0]), .s_axil_rresp(rresp[1:0]), .s_axil_rvalid(rvalid[0]),
    .s_axil_rready(rready[0])
);

wire [PORT-1:0] lookup;
wire            entry_valid, datagram_sent, no_entry;
wire [95:0]     entry;
wire [3:0]      result_fate;

udp_wrap #(.DATA(DATA), .PORTS(PORTS), .BEATS(BEATS), .DEPTH(DEPTH), .BLOCK(BLOCK)) wrap (
    .clk(clk), .rst(rst),
    .s_axis_tdata(result_data), .s_axis_tkeep(result_keep),
    .s_axis_tvalid(result_valid && !is_control), .s_axis_tready(result_ready),
    .s_axis_tlast(result_last), .s_axis_tuser({result_tos, result_user[PORTS-1:0]}),
    .m_axis_tdata(sent_data), .m_axis_tkeep(sent_keep), .m_axis_tvalid(sent_valid),
    .m_axis_tready(sent_ready), .m_axis_tlast(sent_last), .m_axis_tuser(sent_user),
    .sender(sender), .lookup(lookup), .entry_valid(entry_valid), .entry(entry),
    .fate(result_fate), .sent(datagram_sent), .no_entry(no_entry)
);

// ---- The way back, through the arbiter's last queue.

localparam BACK = USER + 2 + 9*LANES*4 + 1;
wire [1:0]        back_queue;
wire [USER-1:0]   sent_about;
assign sent_about[PORTS+15:0] = sent_user;
generate
    if (USER > PORTS + 16) begin : g_zeros
        assign sent_about[USER-1:PORTS+16] = 0;
    end
endgenerate

iswitch_choice #(.QUEUES(3), .WIDTH(BACK)) back (
    .clk(clk), .rst(rst),
    .s_valid({s_host_tvalid && !to_switch, copy_valid, sent_valid}),
    .s_ready({host_returns, copy_returns, sent_ready}),
    .s_beat({2'b00, s_host_tuser, s_host_tdata, s_host_tkeep, s_host_tlast,
             2'b01, copy_user, copy_data, copy_keep, copy_last,
             2'b10, sent_about, sent_data, sent_keep, sent_last}),
    .m_valid(back_valid), .m_ready(back_ready),
    .m_beat({back_user, back_data, back_keep, back_last}), .m_queue(back_queue)
);

// ---- Registers.

axil_split #(.BLOCKS(3)) split (
    .clk(clk), .rst(rst),
    .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
    .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
    .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
    .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
    .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
    .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready),
    .m_axil_awaddr(awaddr), .m_axil_awvalid(awvalid), .m_axil_awready(awready), .m_axil_wdata(wdata),
    .m_axil_wstrb(wstrb), .m_axil_wvalid(wvalid), .m_axil_wready(wready), .m_axil_bresp(bresp),
    .m_axil_bvalid(bvalid), .m_axil_bready(bready), .m_axil_araddr(araddr), .m_axil_arvalid(arvalid),
    .m_axil_arready(arready), .m_axil_rdata(rdata), .m_axil_rresp(rresp), .m_axil_rvalid(rvalid),
    .m_axil_rready(rready)
);

// A register, so that no verdict has to be made and counted within one cycle.
localparam COUNTERS = 15;
reg [COUNTERS-1:0] grow_reg = 0;
wire copied = copies && way_last;
always @(posedge clk)
    if (rst) grow_reg <= 0;
    else grow_reg <= {no_entry, datagram_sent, result_fate, copied && copy_too_long,
                      copied && !copy_too_long, frame_fate};

// "iSWd", and the version of the list above.
axil_counters #(
    .COUNTERS(COUNTERS), .AMOUNT(1), .ADDRESS(12), .TYPE(32'h69535764), .VERSION(32'd1),
    .NEXT(32'h2000)
) counters (
    .clk(clk), .rst(rst), .grow(grow_reg),
    .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid[1]), .s_axil_awready(awready[1]),
    .s_axil_wdata(wdata), .s_axil_wstrb(wstrb), .s_axil_wvalid(wvalid[1]), .s_axil_wready(wready[1]),
    .s_axil_bresp(bresp[3:2]), .s_axil_bvalid(bvalid[1]), .s_axil_bready(bready[1]),
    .s_axil_araddr(araddr), .s_axil_arvalid(arvalid[1]), .s_axil_arready(arready[1]),
    .s_axil_rdata(rdata[63:32]), .s_axil_rresp(rresp[3:2]), .s_axil_rvalid(rvalid[1]),
    .s_axil_rready(rready[1])
);

// "UDPr", and the version of its layout.
udp_receivers #(.PORTS(PORTS), .TYPE(32'h55445072), .VERSION(32'd1)) receivers (
    .clk(clk), .rst(rst),
    .sender(sender), .lookup(lookup), .entry_valid(entry_valid), .entry(entry),
    .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid[2]), .s_axil_awready(awready[2]),
    .s_axil_wdata(wdata), .s_axil_wstrb(wstrb), .s_axil_wvalid(wvalid[2]), .s_axil_wready(wready[2]),
    .s_axil_bresp(bresp[5:4]), .s_axil_bvalid(bvalid[2]), .s_axil_bready(bready[2]),
    .s_axil_araddr(araddr), .s_axil_arvalid(arvalid[2]), .s_axil_arready(arready[2]),
    .s_axil_rdata(rdata[95:64]), .s_axil_rresp(rresp[5:4]), .s_axil_rvalid(rvalid[2]),
    .s_axil_rready(rready[2])
);

wire unused = &{1'b0, payload_user[PORT+58:PORT+3], tagged_user[USER+QUEUE+3:USER+QUEUE+2],
    back_queue};

endmodule

`resetall
