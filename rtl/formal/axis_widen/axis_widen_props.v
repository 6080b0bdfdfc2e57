// What the module that widens beats promises. This file is read here `axis_widen`. Proved by induction, for any
// frames, holes in them, and any pauses.

wire out = m_axis_tvalid && m_axis_tready;

// Narrow beats are counted from the first one of their frame: those that came, those whose wide beat left, and all of
// the frame whose last beat waits. A wide beat counts as RATIO.
localparam NUMBER = PLACE + 3;
reg [NUMBER-1:0] came = 0, left = 0, length;
wire [PLACE-1:0] place = came[PLACE-1:0];
wire [NUMBER-1:0] here = valid_reg && last_reg ? length - left : came - left;
always @(posedge clk) begin
    if (takes) came <= s_axis_tlast ? 0 : came + 1'b1;
    if (takes && s_axis_tlast) length <= came + 1'b1;
    if (out) left <= m_axis_tlast ? 0 : left + RATIO;
    if (rst) {came, left} <= 0;
end
always @* begin
    if (m_axis_tvalid) all_there: assert (m_axis_tlast ? here >= 1 && here <= RATIO : here == RATIO);
    assert (left[PLACE-1:0] == 0);
    if (valid_reg) assert (place_reg == 0);
    if (valid_reg && last_reg) assert (came == 0);
    if (!valid_reg) assert (here == {3'd0, place_reg});
end

// An offered beat stays, unchanged, until it is taken.
reg past = 0, past_rst, past_waits, past_ends;
reg [WIDE+WIDE/8:0] past_beat;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= m_axis_tvalid && !m_axis_tready;
    past_beat <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast};
    past_ends <= takes && (s_axis_tlast || place == RATIO - 1);
end
always @* if (past && !past_rst) begin
    if (past_waits) stays: assert (m_axis_tvalid);
    if (past_waits) unchanged: assert ({m_axis_tdata, m_axis_tkeep, m_axis_tlast} == past_beat);
    // A wide beat is offered in the cycle after its last narrow beat came.
    if (past_ends) at_once: assert (m_axis_tvalid);
end

// A narrow beat comes in every cycle, if the sink is ready.
always @* if (m_axis_tready) no_stall: assert (s_axis_tready);

// None is lost or doubled, and a frame never shares a wide beat. The prover picks a narrow beat: it is in the next
// wide beat that leaves, and that one is of its frame and of its place. Only the first byte of a wide beat with a
// mistake may be kept no more.
(* anyseq *) reg pick;
reg seen = 0, shadow_last;
reg [NARROW-1:0] shadow_data;
reg [BYTES-1:0] shadow_keep;
reg [NUMBER-1:0] number;
wire [PLACE-1:0] at = number[PLACE-1:0];
wire [NARROW-1:0] data_there = data_reg >> NARROW*at;
wire [BYTES-1:0] keep_there = keep_reg >> BYTES*at;
wire [BYTES-1:0] first_byte = at == 0;
always @(posedge clk) begin
    if (out) seen <= 0;
    if (takes && pick && (!seen || out)) begin
        seen <= 1;
        {shadow_data, shadow_keep, shadow_last, number} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast, came};
    end
    if (rst) seen <= 0;
end
always @* if (seen) begin
    its_place: assert (number - left == {3'd0, at} && {3'd0, at} < here);
    its_data: assert (data_there == shadow_data);
    its_bytes: assert ((keep_there | first_byte) == (shadow_keep | first_byte));
    if (keep_reg[0]) unspoilt: assert (keep_there == shadow_keep);
    if (shadow_last) its_end: assert (m_axis_tvalid && m_axis_tlast && length == number + 1'b1);
end

// Where no narrow beat came, nothing is kept, and bytes are zeros. There is no narrow beat in the register when
// `here` is 0.
integer p;
always @*
    for (p = 0; p < RATIO; p = p + 1)
        if (here != 0 && p >= here)
            assert (data_reg[NARROW*p +: NARROW] == 0 && keep_reg[BYTES*p +: BYTES] == 0);

// A frame has a mistake in wide beats exactly if it had one in narrow beats.
reg came_wrong, leaves_wrong, missing;
integer b;
always @* begin
    came_wrong = !s_axis_tkeep[0];
    for (b = 1; b < BYTES; b = b + 1)
        if (s_axis_tkeep[b] ? !s_axis_tkeep[b-1] : !s_axis_tlast) came_wrong = 1;
    leaves_wrong = !m_axis_tkeep[0];
    for (b = 1; b < WIDE/8; b = b + 1)
        if (m_axis_tkeep[b] ? !m_axis_tkeep[b-1] : !m_axis_tlast) leaves_wrong = 1;
    // Of the narrow beats that are here.
    missing = 0;
    for (b = 0; b < WIDE/8; b = b + 1)
        if (b < BYTES*here && !keep_reg[b]) missing = 1;
end
reg wrong_in = 0, wrong_out = 0, wrong;
always @(posedge clk) begin
    if (takes) wrong_in <= !s_axis_tlast && (wrong_in || came_wrong);
    if (takes && s_axis_tlast) wrong <= wrong_in || came_wrong;
    if (out) wrong_out <= !m_axis_tlast && (wrong_out || leaves_wrong);
    if (rst) {wrong_in, wrong_out} <= 0;
end
always @* begin
    if (m_axis_tvalid && m_axis_tlast) stays_wrong: assert ((wrong_out || leaves_wrong) == wrong);
    if (valid_reg && last_reg) assert (!wrong_in);
    else assert (wrong_in == (wrong_out || missing));
    if (!(valid_reg && last_reg) && missing) assert (!keep_reg[0]);
end

always @* if (past && !rst && !past_rst) begin
    cover (out && m_axis_tlast && left == RATIO && here == 1 && takes && !wrong);
    cover (out && m_axis_tlast && here == RATIO && left == RATIO && past_waits && !wrong);
    cover (out && m_axis_tlast && wrong && !wrong_out && here == RATIO && seen && shadow_last && shadow_keep == 0);
    cover (out && seen && at == RATIO - 1 && past_waits && shadow_data == {NARROW{1'b1}});
end
