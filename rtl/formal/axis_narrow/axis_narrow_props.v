// What the module that narrows beats promises. This file is read inside `axis_narrow`. Proved by induction, for any
// frames, holes in them, and any pauses.

wire takes = s_axis_tvalid && s_axis_tready;
wire out = m_axis_tvalid && m_axis_tready;

// An offered beat stays, unchanged, until it is taken.
reg past = 0, past_rst, past_waits;
reg [NARROW+BYTES:0] past_beat;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= m_axis_tvalid && !m_axis_tready;
    past_beat <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast};
end
always @* if (past && !past_rst && past_waits) begin
    stays: assert (m_axis_tvalid);
    unchanged: assert ({m_axis_tdata, m_axis_tkeep, m_axis_tlast} == past_beat);
end

// The wide beat that is here, as it came, and how many narrow beats of it left.
reg open = 0, shadow_last;
reg [WIDE-1:0] shadow_data;
reg [WIDE/8-1:0] shadow_keep;
reg [PLACE:0] sent = 0;
// Bytes behind the narrow beat that is offered.
wire [WIDE/8-1:0] rest = shadow_keep >> BYTES*(sent + 1);
wire at_end = shadow_last ? rest == 0 : sent == RATIO - 1;
always @(posedge clk) begin
    if (out) sent <= sent + 1'b1;
    if (out && at_end) open <= 0;
    if (takes) begin
        {open, sent} <= {1'b1, {PLACE+1{1'b0}}};
        {shadow_data, shadow_keep, shadow_last} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast};
    end
    if (rst) open <= 0;
end

// None is lost or doubled. The narrow beats leave in their order, in all cycles in which the sink is ready. The next
// wide beat is taken when the last narrow one leaves, so there is no pause.
wire [NARROW-1:0] data_there = shadow_data >> NARROW*sent;
wire [BYTES-1:0] keep_there = shadow_keep >> BYTES*sent;
always @* begin
    no_pause: assert (m_axis_tvalid == open);
    no_stall: assert (s_axis_tready == (!open || (m_axis_tready && at_end)));
    if (open) begin
        its_place: assert (sent < RATIO);
        its_data: assert (m_axis_tdata == data_there && m_axis_tkeep == keep_there);
        its_end: assert (m_axis_tlast == (shadow_last && at_end));
        assert ({data_reg, keep_reg, last_reg} == {shadow_data, shadow_keep, shadow_last});
        assert (sent == {1'b0, place_reg} && place_reg <= end_reg && ends == at_end);
    end
    // The last narrow beat has a byte, if its wide beat had one.
    if (m_axis_tvalid && m_axis_tlast && shadow_keep != 0) not_empty: assert (m_axis_tkeep != 0);
end
// The end is that of the bytes, also when it is not reached yet.
integer p;
always @* if (open)
    for (p = 0; p < RATIO; p = p + 1) begin
        if (p > end_reg) assert (shadow_last && shadow_keep[BYTES*p +: BYTES] == 0);
        if (p == end_reg && p != 0) assert (!shadow_last || shadow_keep[BYTES*p +: BYTES] != 0);
    end

// A beat has a mistake in narrow beats exactly if it had one when it was wide.
reg leaves_wrong, came_wrong, missing;
integer b;
always @* begin
    came_wrong = !shadow_keep[0];
    for (b = 1; b < WIDE/8; b = b + 1)
        if (shadow_keep[b] ? !shadow_keep[b-1] : !shadow_last) came_wrong = 1;
    leaves_wrong = !m_axis_tkeep[0];
    for (b = 1; b < BYTES; b = b + 1)
        if (m_axis_tkeep[b] ? !m_axis_tkeep[b-1] : !m_axis_tlast) leaves_wrong = 1;
    // Of the narrow beats that left.
    missing = 0;
    for (b = 0; b < WIDE/8; b = b + 1)
        if (b < BYTES*sent && !shadow_keep[b]) missing = 1;
end
reg wrong_out = 0;
always @(posedge clk) begin
    if (out) wrong_out <= wrong_out || leaves_wrong;
    if (takes || rst) wrong_out <= 0;
end
always @* if (open) begin
    if (at_end) stays_wrong: assert ((wrong_out || leaves_wrong) == came_wrong);
    assert (wrong_out == missing);
end

always @* if (past && !rst && !past_rst) begin
    cover (out && m_axis_tlast && sent == RATIO - 1 && past_waits && takes && !came_wrong);
    cover (out && m_axis_tlast && sent == 1 && m_axis_tkeep == 1 && !came_wrong);
    cover (out && m_axis_tlast && sent == RATIO - 1 && came_wrong && !wrong_out);
    cover (out && m_axis_tlast && m_axis_tkeep == 0);
    cover (out && at_end && !m_axis_tlast && m_axis_tkeep == 0 && past_waits);
end
