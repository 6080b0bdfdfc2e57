// What the writer of the status promises. This file is read inside `olaf_status`. The properties are
// proved by induction, for any frames and any pauses.

// An offered beat stays, unchanged, until it is taken.
reg past = 0, past_waits, past_last, past_rst;
reg [511:0] past_data;
reg [63:0] past_keep;
reg [USER-1:0] past_user;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= m_axis_tvalid && !m_axis_tready;
    {past_data, past_keep, past_last, past_user} <=
        {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser};
end
always @* if (past && !past_rst && past_waits) begin
    stays: assert (m_axis_tvalid);
    unchanged: assert (
        {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser}
            == {past_data, past_keep, past_last, past_user});
end

// No beat is lost or doubled: those that came are those that left and those in the three steps.
reg [2:0] came = 0, left = 0;
always @(posedge clk) begin
    came <= rst ? 0 : came + (s_axis_tvalid && s_axis_tready);
    left <= rst ? 0 : left + (m_axis_tvalid && m_axis_tready);
end
wire [2:0] inside = {2'd0, valid_1_reg} + valid_2_reg + valid_3_reg;
always @* none_lost: assert (came == left + inside);

// A sink that is ready is never kept waiting: the input is ready then, too.
always @* if (m_axis_tready) no_stall: assert (s_axis_tready);

// Only the fields of the status change, and only in the second beat of a frame that began as an answer. The
// prover picks the byte; a shadow of it goes beside the beat.
(* anyconst *) reg [5:0] watched;
reg [7:0] shadow_1, shadow_2, shadow_3;
reg second_1 = 0, second_2 = 0, second_3 = 0, second = 0, begins = 1;
wire [7:0] byte_in = s_axis_tdata >> {watched, 3'd0};
wire [7:0] byte_1 = data_1_reg >> {watched, 3'd0};
wire [7:0] byte_2 = data_2_reg >> {watched, 3'd0};
wire [7:0] byte_out = m_axis_tdata >> {watched, 3'd0};
wire a_field = (watched >= ACTIVE_CLUSTERS && watched <= SWITCHES)
    || (watched >= ROUND_US && watched < ROUND_US + 4);
always @(posedge clk) begin
    if (moves) begin
        {shadow_1, shadow_2, shadow_3} <= {byte_in, shadow_1, shadow_2};
        {second_1, second_2, second_3} <= {s_axis_tvalid && second, second_1, second_2};
        if (s_axis_tvalid) begin
            second <= begins && !s_axis_tlast && s_axis_tdata[47:0] >> 8*5 != 1;
            begins <= s_axis_tlast;
        end
    end
    if (rst) {second, second_1, second_2, second_3, begins} <= 5'd1;
end
always @* begin
    assert (begins == first_reg);
    if (answer_reg) assert (second);
    if (answer_1_reg) assert (second_1 && valid_1_reg);
    if (answer_2_reg) assert (second_2 && valid_2_reg);
    if (answer_3_reg) assert (second_3 && valid_3_reg);
    if (valid_1_reg) assert (byte_1 == shadow_1);
    if (valid_2_reg) assert (byte_2 == shadow_2);
    if (valid_3_reg && !(answer_3_reg && a_field)) untouched: assert (byte_out == shadow_3);
end

// An answer is counted once, with its last beat, and nothing else is. What begins as an answer, and keeps the last
// byte of its header, is one: `counted` goes beside its beats from the second one on.
reg candidate = 0, held = 0, counted_1 = 0, counted_2 = 0, counted_3 = 0;
wire [47:0] bytes_in = s_axis_tdata[47:0];
wire counted = begins ? 1'b0 : (candidate && s_axis_tkeep[112-64-1]) || held;
always @(posedge clk) begin
    if (moves) begin
        {counted_1, counted_2, counted_3} <= {s_axis_tvalid && counted, counted_1, counted_2};
        if (s_axis_tvalid) begin
            candidate <= begins && !s_axis_tlast && s_axis_tdata[63:48] == 0
                && (bytes_in == {8'd2, 8'd3, "FALO"} || bytes_in == {8'd3, 8'd3, "FALO"});
            held <= counted && !s_axis_tlast;
        end
    end
    if (rst) {candidate, held, counted_1, counted_2, counted_3} <= 5'd0;
end
// What the beat before one in step 2, in step 1, and at the input says.
wire before_2 = valid_3_reg ? counted_3 && !last_3_reg : before_reg;
wire before_1 = valid_2_reg ? counted_2 && !last_2_reg : before_2;
wire before_in = valid_1_reg ? counted_1 && !last_1_reg : before_1;
always @* begin
    once: assert (stamped == (m_axis_tvalid && m_axis_tready && m_axis_tlast && counted_3));
    assert (candidate == answer_reg && held == before_in && !(begins && (candidate || held)));
    if (valid_1_reg) assert (counted_1 == (answer_1_reg || before_1));
    if (valid_2_reg) assert (counted_2 == (answer_2_reg || before_2));
    if (valid_3_reg) assert (counted_3 == (answer_3_reg || before_reg));
end

always @(posedge clk) if (past && !rst) begin
    several_beats: cover (stamped && before_reg && !answer_3_reg);
    cover (stamped && past_waits && byte_out != shadow_3);
    cover (stamped && m_axis_tdata[8*SWITCHES +: 8] == 8'hff && second_3);
    cover (m_axis_tvalid && m_axis_tready && second_3 && !answer_3_reg && came == 0);
    cover (inside == 3 && !m_axis_tready);
end
