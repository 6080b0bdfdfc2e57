// What the input buffer promises. This file is read inside `iswitch_frames`. Proved by induction, for datagrams of 3
// beats and more, and a buffer of 4 beats and 2 datagrams.

reg past = 0;
always @(posedge clk) past <= 1;
always @* assume (past || rst);
`ifdef ONLY_FULL_BEATS
// So few cases that the solver gets to the mistakes.
always @* assume (s_axis_tdata[LANES*32-1:4] == 0 && &s_axis_tkeep && (rst == !past));
`endif

`ifdef ONLY_NUMBERS
always @* assume (picked == 0 && rst == !past && !take && !frame_ready);
always @* assume (&s_axis_tkeep || s_axis_tkeep == 32'hff || s_axis_tkeep == 32'hfffff);
always @* assume (&s_axis_tkeep == !s_axis_tlast);
`endif

// The reader: beats are taken only of datagrams that have left. `owed` counts those that may still be taken.
localparam COUNT = ADDRESS + 2;
reg [COUNT-1:0] owed = 0;
always @* if (take) assume (owed != 0 || (leaves && frame_beats != 0));
always @(posedge clk) owed <= rst ? 0 : owed + (leaves ? frame_beats : 0) - take;

// Every stored beat belongs to one datagram: to one that left, to one that waits, or to the one that comes in.
wire [FRAME-1:0] second = frame_read_reg + 1'b1;
wire [BEAT-1:0] beats_first = frame_mem[frame_read_reg][2 + USER +: BEAT];
wire [BEAT-1:0] beats_second = frame_mem[second][2 + USER +: BEAT];
wire [COUNT-1:0] waiting = (frames_reg > 0 ? beats_first : 0) + (frames_reg > 1 ? beats_second : 0);
always @* if (past) begin
    assert (frames_reg <= ALL_FRAMES && used_reg <= ALL);
    assert (frame_write_reg == frame_read_reg + frames_reg[FRAME-1:0]);
    assert (write_reg == read_reg + used_reg[ADDRESS-1:0]);
    assert (stored_reg <= LONGEST && owed <= ALL);
    if (frames_reg > 0) assert (beats_first <= LONGEST);
    if (frames_reg > 1) assert (beats_second <= LONGEST);
    none_lost: assert ({1'b0, used_reg} == owed + waiting + stored_reg);
end

// No deadlock: the input stops only while a datagram waits, or beats that may be taken.
always @* if (past && !s_axis_tready) reason: assert (frame_valid || owed != 0);

// The prover picks a beat by its number since the reset: what is taken as that number is what was stored as it.
(* anyconst *) reg [ADDRESS:0] watched;
reg [ADDRESS:0] came = 0, taken = 0;
reg [LANES*32-1:0] shadow;
reg seen = 0, past_taken = 0;
wire [ADDRESS:0] ahead = watched - taken;
always @(posedge clk) begin
    came <= came + stores;
    taken <= taken + take;
    if (stores && came == watched) {seen, shadow} <= {1'b1, s_axis_tdata};
    if (take && taken == watched) seen <= 0;
    past_taken <= take && taken == watched && seen;
    if (rst) {came, taken, seen, past_taken} <= 0;
end
always @* if (past) begin
    assert (came[ADDRESS-1:0] == write_reg && taken[ADDRESS-1:0] == read_reg && came - taken == used_reg);
    if (seen) assert (ahead < used_reg);
    if (seen) assert (data_mem[watched[ADDRESS-1:0]] == shadow);
    if (past_taken) in_order: assert (beat == shadow);
end

// A datagram is offered with its own first bytes, its length, and its tuser. The prover picks one by its number.
(* anyconst *) reg [FRAME:0] picked;
reg [FRAME:0] frames_came = 0, frames_left = 0;
wire [FRAME:0] frames_ahead = picked - frames_left;
// The datagram that comes in: its first beat, its beats (as many as matter), its bytes, and whether each beat but
// the last one is full and none has a hole.
reg [255:0] start;
reg [BEAT:0] beats = 0;
reg [LENGTH:0] bytes = 0;
reg plain = 1;
reg [LENGTH:0] ones;
integer n;
always @* begin
    ones = 0;
    for (n = 0; n < BYTES; n = n + 1) ones = ones + s_axis_tkeep[n];
end
// Words 9 and 12 of the datagram, in its second beat.
reg [31:0] word_9, word_12;
wire [31:0] word_9_now = beats == 1 ? s_axis_tdata[63:32] : word_9;
wire [31:0] word_12_now = beats == 1 ? s_axis_tdata[159:128] : word_12;
reg picked_number_of_40, picked_number_of_52;
wire whole = (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == 0;
wire full = &s_axis_tkeep;
reg [255:0] picked_head;
reg [LENGTH-1:0] picked_length;
reg [BEAT-1:0] picked_beats;
reg [USER-1:0] picked_user;
reg picked_plain, picked_too_long, known = 0;
always @(posedge clk) begin
    if (comes) begin
        if (beats == 0) start <= s_axis_tdata[255:0];
        {word_9, word_12} <= {word_9_now, word_12_now};
        beats <= s_axis_tlast ? 0 : beats + (beats <= BEATS);
        bytes <= s_axis_tlast ? 0 : beats <= BEATS ? bytes + ones : bytes;
        plain <= s_axis_tlast || (plain && full);
    end
    frames_came <= frames_came + ends;
    frames_left <= frames_left + leaves;
    if (ends && frames_came == picked) begin
        known <= 1;
        picked_head <= beats == 0 ? s_axis_tdata[255:0] : start;
        picked_length <= bytes + ones;
        picked_beats <= beats < BEATS ? beats + 1'b1 : BEATS;
        picked_user <= s_axis_tuser;
        picked_plain <= plain && whole;
        picked_too_long <= beats >= BEATS;
        picked_number_of_40 <= word_9_now != 0;
        picked_number_of_52 <= word_12_now != 0;
    end
    if (leaves && frames_left == picked) known <= 0;
    if (rst) {beats, bytes, frames_came, frames_left, known} <= 0;
    if (rst) plain <= 1;
end
wire [DESCRIPTION-1:0] of_picked = frame_mem[picked[FRAME-1:0]];
wire [LENGTH-1:0] length_of_picked = of_picked[2 + USER + BEAT +: LENGTH];
always @* if (past) begin
    assert (frames_came[FRAME-1:0] == frame_write_reg && frames_left[FRAME-1:0] == frame_read_reg);
    assert (frames_came - frames_left == frames_reg);
    assert (!known || frames_ahead < frames_reg);
    assert (beats <= BEATS + 1 && stored_reg == (beats < BEATS ? beats : BEATS));
    assert (too_long_reg == (beats > BEATS));
    if (beats == 0) assert (bytes == 0 && plain);
    if (beats != 0) assert (head_reg == start);
`ifndef ONLY_FULL_BEATS
    if (plain && beats <= BEATS) assert (bytes == beats * BYTES);
`endif
    if (known) begin
        assert (of_picked[DESCRIPTION-1 -: 256] == picked_head && of_picked[USER-1:0] == picked_user);
        assert (of_picked[USER + 2 +: BEAT] == picked_beats && of_picked[USER] == picked_too_long);
`ifndef ONLY_FULL_BEATS
        if (picked_plain && !picked_too_long) begin
            assert (length_of_picked == picked_length);
            if (picked_length == 40) assert (of_picked[USER + 1] == picked_number_of_40);
            if (picked_length == 52) assert (of_picked[USER + 1] == picked_number_of_52);
        end
`endif
    end
    if (known && frames_ahead == 0) begin
        offered: assert (frame_valid && frame_head == picked_head && frame_user == picked_user);
        its_beats: assert (frame_beats == picked_beats && frame_too_long == picked_too_long);
`ifndef ONLY_FULL_BEATS
        if (picked_plain && !frame_too_long) begin
            its_length: assert (frame_length == picked_length);
            if (frame_length == 40) number_of_40: assert (frame_has_number == picked_number_of_40);
            if (frame_length == 52) number_of_52: assert (frame_has_number == picked_number_of_52);
        end
`endif
    end
end

always @* if (past) begin
    blocked: cover (s_axis_tvalid && !s_axis_tready && used_reg == ALL && stored_reg != 0);
    longest: cover (leaves && known && frames_ahead == 0 && picked_plain && frame_length == BEATS*BYTES);
    too_long: cover (leaves && frame_too_long && used_reg == LONGEST);
    numbered: cover (leaves && known && frames_ahead == 0 && frame_length == 52 && frame_has_number);
    last_one: cover (past_taken && watched == 5);
end
