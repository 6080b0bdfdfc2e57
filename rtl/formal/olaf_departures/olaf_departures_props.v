// What the departures promise. This file is read inside `olaf_departures`. The control of the queue is a few
// assumptions here; its own proof shows them.

// The control: an entry is locked if one waits and none departs, or the one that does ends.
reg departs = 0;
reg [SLOT:0] waiting = 0;
(* anyseq *) reg appended;
always @(posedge clk) begin
    departs <= begun || (departs && !end_departure);
    waiting <= waiting + (appended && waiting < SLOTS) - begun;
    if (rst) {departs, waiting} <= 0;
end
wire [15:0] lanes = slot_lanes[16*departing_slot +: 16];
always @* begin
    assume (departing == departs);
    assume (used == waiting + departs);
    assume (begun == (begin_departure && waiting != 0 && (!departs || end_departure)));
    assume (departing_slot < SLOTS);
    // An entry has two beats at least, and no more than fit.
    assume (lanes != 0 && lanes <= 16 * (1 << BEAT) - HEADER_WORDS);
    assert (waiting <= SLOTS);
end

// The departing entry keeps its slot and its size, and whether it was merged; the other frames' beats wait.
reg past = 0, past_rst, past_departs, past_offers, past_waits, past_last, past_m_last;
reg [SLOT-1:0] past_slot;
reg [15:0] past_lanes;
reg past_merged, past_s_last;
reg [511:0] past_data;
reg [63:0] past_keep;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_departs <= departs && !end_departure;
    {past_slot, past_lanes, past_merged} <= {departing_slot, lanes, was_merged};
    past_offers <= s_axis_tvalid && !s_axis_tready;
    past_s_last <= s_axis_tlast;
    past_waits <= m_axis_tvalid && !m_axis_tready;
    {past_data, past_keep, past_m_last} <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast};
end
always @* if (past && !past_rst) begin
    if (past_departs)
        assume (departing_slot == past_slot && lanes == past_lanes && was_merged == past_merged);
    if (past_offers) assume (s_axis_tvalid && s_axis_tlast == past_s_last);
end
// Other frames come whole: no pause in the middle of one.
always @* if (inside_reg) assume (s_axis_tvalid);

// An offered beat stays, unchanged, until it is taken.
always @* if (past && !past_rst && past_waits) begin
    stays: assert (m_axis_tvalid);
    unchanged: assert ({m_axis_tdata, m_axis_tkeep, m_axis_tlast} == {past_data, past_keep, past_m_last});
end

// A departure reads each beat of its entry once, in order, the last one when it ends.
reg [BEAT:0] reads = 0;
always @(posedge clk)
    if (rst) reads <= 0;
    else if (read) reads <= end_departure ? 0 : reads + 1'b1;
always @* begin
    in_order: assert (reads == {1'b0, beat_reg});
    assert ({{12-BEAT{1'b0}}, beat_reg} <= last_word[15:4]);
    if (!departs) assert (beat_reg == 0 && !read);
    if (read) ends_with_the_last: assert (end_departure == ({{12-BEAT{1'b0}}, beat_reg} == last_word[15:4]));
    if (begin_departure && waiting != 0) assert (begun);
end

// Frames are not mixed: behind a beat that is not the last of its frame comes a beat of the same source. `open`
// is the source of a frame whose last beat is still to come at the output.
reg open_entry = 0, open_other = 0;
always @(posedge clk) begin
    if (moves_3 && valid_2_reg) open_entry <= !last_2_reg;
    if (other_beat) open_other <= !s_axis_tlast;
    if (rst) {open_entry, open_other} <= 0;
end
always @* begin
    assert (open_other == inside_reg);
    if (open_other) assert (others_reg && !valid_2_reg && !departs);
    if (others_reg) assert (!departs && (!open_entry || valid_2_reg));
    if (valid_2_reg) entries_together: assert (!open_other);
    if (other_beat) others_together: assert (!open_entry && !valid_2_reg);
    if (open_entry && !departs) assert (valid_2_reg && last_2_reg);
    if (departs && beat_reg == 0) assert (valid_2_reg ? last_2_reg : !open_entry);
    if (departs && beat_reg != 0) assert (valid_2_reg ? !last_2_reg : open_entry);
    if (!departs && valid_2_reg) assert (last_2_reg);
end

// The second beat of a merged entry leaves with the mean, which is there with `known`, or a cycle after `soon`.
(* anyconst *) reg [63:0] truth;
reg past_soon = 0;
always @(posedge clk) past_soon <= soon;
always @* if (known || past_soon) assume (known_mean == truth);
always @* begin
    if (late_reg) assert (valid_2_reg && first_2_reg && beat_reg == 1 && (past_soon || !merged_reg));
    if (departs && beat_reg != 0 && merged_reg && !late_reg) assert (mean_reg == truth);
    if (valid_2_reg && second_2_reg && merged_reg)
        with_its_mean: assert (!late_reg && written[8*(80-64) +: 64] == wide(truth));
    if (valid_2_reg && second_2_reg) no_field: assert (written[8*(89-64) +: 24] == 0);
end

// No deadlock: with a ready sink, sums that settle and a mean that is known, a departing entry has left after as
// many cycles as it has beats, and one more for each of the two steps before the output.
wire helps = m_axis_tready && !unsettled && (known || soon);
reg [7:0] busy = 0;
always @(posedge clk)
    if (rst || !departs || end_departure || !helps) busy <= 0;
    else busy <= busy + 1'b1;
always @* bounded: assert (busy <= reads + 0 || !past);

// No starvation: where a frame of the others ends, a waiting entry is locked. Where no frame is on the link and
// none of the others is there, it is locked too.
always @* begin
    if (other_beat && s_axis_tlast && waiting != 0) their_turn: assert (begun);
    if (!departs && !others_reg && !s_axis_tvalid && waiting != 0) at_once: assert (begun);
end

always @(posedge clk) if (past && !rst) begin
    cover (begun && end_departure && m_axis_tvalid);
    cover (other_beat && s_axis_tlast && past_offers && waiting == 2);
    cover (read && starts && was_merged && valid_2_reg && last_2_reg);
    cover (end_departure && reads == 3);
end
