// What the FIFO of frames promises. This file is read inside `frame_fifo`. Beats are narrow: nothing depends on
// their width.

// The pointers: what is read is before what is whole, and that before what is written; no more than fits.
wire [ADDRESS:0] whole = frame_reg - read_reg;
wire [ADDRESS:0] inside = write_reg - read_reg;
always @* begin
    assert (inside <= DEPTH);
    assert (whole <= inside);
end

// An offered beat stays, unchanged, until it is taken.
reg past = 0, past_rst, past_waits, past_last;
reg [DATA-1:0] past_data;
reg [DATA/8-1:0] past_keep;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= m_axis_tvalid && !m_axis_tready;
    {past_data, past_keep, past_last} <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast};
end
always @* if (past && !past_rst && past_waits) begin
    stays: assert (m_axis_tvalid);
    unchanged: assert ({m_axis_tdata, m_axis_tkeep, m_axis_tlast} == {past_data, past_keep, past_last});
end

// Nothing is lost or doubled. The prover picks a beat by its number since the reset, of those that were kept:
// what leaves as that number is what came as it. Numbers of beats of a dropped frame are given again.
localparam NUMBER = ADDRESS + 2;
(* anyconst *) reg [NUMBER-1:0] watched;
reg [NUMBER-1:0] came = 0, began = 0, left = 0;
reg [WIDTH-1:0] shadow;
reg seen = 0;
wire kept = write && !lost;
wire out = m_axis_tvalid && m_axis_tready;
always @(posedge clk) begin
    if (kept) came <= came + 1'b1;
    if (write && write_last) begin
        if (write_drop || lost) came <= began;
        else began <= came + 1'b1;
    end
    if (out) left <= left + 1'b1;
    if (kept && came == watched) shadow <= {write_last, write_keep, write_data};
    if (kept && came == watched) seen <= 1;
    if (out && left == watched) seen <= 0;
    if (rst) {came, began, left, seen} <= 0;
end
wire [NUMBER-1:0] read_next = left + m_axis_tvalid;
wire [NUMBER-1:0] ahead = watched - read_next;
always @* begin
    // The numbers are the pointers, with the beat at the output before them.
    assert (came[ADDRESS:0] == write_reg && began[ADDRESS:0] == frame_reg && read_next[ADDRESS:0] == read_reg);
    assert (began - read_next == {1'b0, whole});
    assert (came - read_next == {1'b0, inside});
end
// So the watched beat has one place in the memory, until it is at the output.
(* hierconn *) wire [ADDRESS-1:0] \memory.g_lut.picked ;
(* hierconn *) wire [WIDTH-1:0] \memory.g_lut.picked_word ;
always @* begin
    assume (\memory.g_lut.picked == watched[ADDRESS-1:0]);
    if (seen && ahead < {1'b0, inside}) assert (\memory.g_lut.picked_word == shadow);
    if (seen && m_axis_tvalid && left == watched)
        in_order: assert ({m_axis_tlast, m_axis_tkeep, m_axis_tdata} == shadow);
end

// With a ready sink a whole frame leaves without a pause.
always @(posedge clk) if (past && !past_rst && !rst && $past(m_axis_tready) && $past(whole) != 0)
    no_pause: assert (m_axis_tvalid);

always @(posedge clk) if (!rst) begin
    cover (taken && inside == DEPTH);
    cover (no_room);
    cover (out && left == watched && watched == DEPTH);
    cover (write && write_last && write_drop && came != began);
end
