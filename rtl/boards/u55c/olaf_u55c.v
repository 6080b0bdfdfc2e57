// OLAF's queue between the two P4 blocks of an OpenNIC shell's 250 MHz box on an Alveo U55C (OLAF §7).
//
// Not built: no place-and-route tool and no board has seen this file. README.md says what to connect.
//
// A frame comes with the user signal of p4/headers.p4 (`user_t`), which does not change within the frame. An
// update goes through the queue, as a datagram without Ethernet, IP and UDP. Every other frame goes around the
// queue and keeps its user signal, in which the queue's status is filled in. A frame that leaves the queue
// has class UPDATE, and zeros in the rest of its signal, but for the status.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_u55c #(
    // Entries that the queue holds.
    parameter SLOTS = 8,
    // Bytes of the longest datagram.
    parameter FRAME = 9036,
    // 1: slots in block RAM.
    parameter BLOCK = 1,
    // 1: with the reward gate.
    parameter GATE = 0
) (
    // 250 MHz in an OpenNIC shell.
    input  wire         axis_aclk,
    input  wire         axis_aresetn,

    // From the control plane: see `olaf_queue`.
    input  wire [31:0]  session,
    input  wire         gate,
    input  wire [63:0]  gate_threshold,
    input  wire [15:0]  active_clusters,
    input  wire [31:0]  round_us,

    // From the first P4 block.
    input  wire [511:0] s_axis_tdata,
    input  wire [63:0]  s_axis_tkeep,
    input  wire         s_axis_tvalid,
    output wire         s_axis_tready,
    input  wire         s_axis_tlast,
    input  wire [287:0] s_axis_tuser,

    // To the second P4 block.
    output wire [511:0] m_axis_tdata,
    output wire [63:0]  m_axis_tkeep,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    output wire [287:0] m_axis_tuser,

    // Counters of the queue (`olaf_queue_counters`), in the clock domain of the stream.
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

// `user_t` from its last field up: copy, round_us, slots, active_clusters, used, segment, worker, cluster,
// job, flow, group, class.
localparam COPY = 16;
localparam STATUS = 32 + 16 + 16 + 24;
localparam CLASS = 280;
localparam [7:0] UPDATE = 1;

wire rst = !axis_aresetn;

// A frame's way is chosen with its first beat.
reg  within_reg = 0, update_reg = 0;
wire update = within_reg ? update_reg : s_axis_tuser[CLASS +: 8] == UPDATE;
wire queue_ready, around_ready;
assign s_axis_tready = update ? queue_ready : around_ready;

always @(posedge axis_aclk) begin
    if (s_axis_tvalid && s_axis_tready) begin
        within_reg <= !s_axis_tlast;
        update_reg <= update;
    end
    if (rst) within_reg <= 1'b0;
end

wire [511:0] queue_data;
wire [63:0]  queue_keep;
wire         queue_valid, queue_takes, queue_last, begun, ended;
wire [5:0]   fate;

olaf_queue #(.SLOTS(SLOTS), .FRAME(FRAME), .BLOCK(BLOCK), .GATE(GATE)) queue (
    .clk(axis_aclk), .rst(rst),
    .session(session), .gate(gate), .gate_threshold(gate_threshold),
    .active_clusters(active_clusters), .round_us(round_us),
    .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep), .s_axis_tvalid(s_axis_tvalid && update),
    .s_axis_tready(queue_ready), .s_axis_tlast(s_axis_tlast),
    .m_axis_tdata(queue_data), .m_axis_tkeep(queue_keep), .m_axis_tvalid(queue_valid),
    .m_axis_tready(queue_takes), .m_axis_tlast(queue_last),
    .fate(fate), .begun(begun), .ended(ended),
    .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
    .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
    .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
    .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
    .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
    .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready)
);

// Used slots: an update that is appended takes one, a departure frees one.
reg [23:0] used_reg = 0;
wire appended = fate[0];
wire unused = &{1'b0, fate[5:1], begun, s_axis_tuser[COPY +: STATUS]};
always @(posedge axis_aclk)
    used_reg <= rst ? 24'd0 : used_reg + {23'd0, appended} - {23'd0, ended};

// The output takes whole frames, in turn from the queue and from around it.
reg  sending_reg = 0, from_queue_reg = 0;
wire around_valid = s_axis_tvalid && !update;
wire from_queue = sending_reg ? from_queue_reg : queue_valid && !(around_valid && from_queue_reg);
assign queue_takes = m_axis_tready && from_queue;
assign around_ready = m_axis_tready && !from_queue;
assign m_axis_tvalid = from_queue ? queue_valid : around_valid;
assign m_axis_tdata = from_queue ? queue_data : s_axis_tdata;
assign m_axis_tkeep = from_queue ? queue_keep : s_axis_tkeep;
assign m_axis_tlast = from_queue ? queue_last : s_axis_tlast;

always @(posedge axis_aclk) begin
    // An offered beat must stay, so that the choice holds from the first offer to the last beat.
    if (m_axis_tvalid) begin
        sending_reg <= !(m_axis_tready && m_axis_tlast);
        from_queue_reg <= from_queue;
    end
    if (rst) sending_reg <= 1'b0;
end

// The status must not change while a beat waits: it is taken between frames.
reg [STATUS-1:0] held_reg;
wire [15:0] slots = SLOTS;
wire [STATUS-1:0] status = sending_reg ? held_reg : {used_reg, active_clusters, slots, round_us};
always @(posedge axis_aclk) held_reg <= status;
assign m_axis_tuser[COPY-1:0] = from_queue ? {COPY{1'b0}} : s_axis_tuser[COPY-1:0];
assign m_axis_tuser[COPY +: STATUS] = status;
assign m_axis_tuser[287:COPY+STATUS] =
    from_queue ? {UPDATE, {280-COPY-STATUS{1'b0}}} : s_axis_tuser[287:COPY+STATUS];

endmodule

`resetall
