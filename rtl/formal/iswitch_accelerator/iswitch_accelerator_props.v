// No deadlock: this file is read inside `iswitch_accelerator`, with `fp32_lanes` of this folder in place of the adders. The
// sink is always ready, and the input may be anything. Bounded: see the depth of `short`.

reg past = 0;
always @(posedge clk) past <= 1;
always @* begin
    assume (rst == !past);
    assume (m_axis_tready);
    assume (s_axis_tuser[PORT-1:0] < PORTS);
    assume (!s_axil_arvalid && !s_axil_awvalid && !s_axil_wvalid);
end

// A datagram that waits is decided, or a job of it begins or moves a beat, within 2 SLOTS + 6 cycles: the table is cleared
// in 2 SLOTS of them.
reg [4:0] stuck = 0;
wire moves = decides || (job_valid && job_ready) || take || out_valid || began || frame_ready
    || result_again || forced;
always @(posedge clk) stuck <= !past || !frame_valid || moves ? 0 : stuck + 1'b1;
always @* if (past) moves_on: assert (stuck <= 2*SLOTS + 6);

// The input is blocked only while datagrams wait.
always @* if (past && !s_axis_tready) reason: assert (frame_valid || take || job_valid);

always @* if (past) begin
    cover (m_axis_tvalid && m_axis_tuser[PORTS-1:0] == 1 && !m_axis_tuser[PORTS]);
    cover (stuck == 2*SLOTS);
end
