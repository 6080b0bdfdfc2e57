// What the arrivals promise. This file is read inside `olaf_arrivals`. The decision, the sums and the gate are
// inputs of any kind, but for what their modules promise.

// The decision has one fate. An update has two beats at least. The prover may keep the gate and a trial waiting
// for any time.
wire filtered_or_dropped = arrive && !appended && !merged && !replaced && !rejected;
always @* begin
    assume ({2'd0, appended} + merged + replaced + rejected + filtered_or_dropped == arrive);
    assume (lanes != 0 && lanes <= 16348 && last_word[15:4] == last);
    if (merged) assume (meets && joins);
    if (slot >= SLOTS) assume (0);
end
// A header waits, unchanged, until it is taken.
reg past = 0, past_waits, past_rst;
reg [15:0] past_lanes;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= valid && !take;
    past_lanes <= lanes;
end
always @* if (past && past_waits && !past_rst) assume (valid && lanes == past_lanes);

// Each header that is taken is decided about, once.
always @* one_decision: assert (take == arrive && (!take || valid));

// The beats of each update are given back once, when they were read or are not wanted. `decided` is where the
// beats of the oldest undecided update begin.
reg [ADDRESS-1:0] decided = 0, start = 0;
always @(posedge clk) begin
    if (take) decided <= decided + last + 1'b1;
    if (take) start <= decided;
    if (rst) decided <= 0;
end
wire stored = issue_reg && !trial_reg;
wire [ADDRESS-1:0] given_back = base_reg + (stored ? last_reg + 1'b1 : 1'b0);
wire [ADDRESS-1:0] own_beat = start + beat_reg;
wire [ADDRESS-1:0] oldest_beat = decided + beat_reg;
always @* begin
    assert (!issue_reg || beat_reg <= last_reg);
    given_back_once: assert (decided == given_back);
    if (stored) its_own_beats: assert (base_reg == start && read_address == own_beat);
    if (issue_reg && trial_reg) assert (state_reg == SETTLE && valid && last_reg == last);
    if (issue_reg && trial_reg) trial_of_the_oldest: assert (read_address == oldest_beat);
    if (issue_reg) assert (last_reg != 0);
    if (state_reg != DECIDE) assert (valid && !stored);
end

// A cycle at least is between two updates that go to the sums.
reg past_mean = 0;
always @(posedge clk) past_mean <= mean_take && !rst;
always @* begin
    if (past_mean) assert (issue_reg && beat_reg == 0);
    not_too_fast: assert (!(past_mean && mean_take));
end

// No deadlock: an update is decided about in a bounded time, the waits for the gate and for the division of a
// trial not counted.
localparam [7:0] MOST = 1 << BEAT;
localparam [7:0] TRIAL = MOST + SETTLED + 2;
localparam [7:0] BOUND = MOST + SETTLED + 3 + TRIAL;
wire [7:0] rest = issue_reg ? last_reg - beat_reg + 1'b1 : 0;
wire [7:0] remaining = state_reg == DECIDE ? rest + (was_tried_reg ? 0 : SETTLED + 2 + TRIAL)
    : state_reg == DRAIN ? wait_reg + 1 + TRIAL
    : state_reg == TRY ? TRIAL : rest + wait_reg + 1'b1;
wire pauses = (state_reg == DECIDE && free && valid && compares) || (state_reg == SETTLE && wait_reg == 0 && !tried);
reg [7:0] age = 0;
always @(posedge clk)
    if (rst || take || !valid) age <= 0;
    else if (!pauses) age <= age + 1'b1;
always @* begin
    assert (wait_reg <= SETTLED || state_reg == DECIDE || state_reg == TRY);
    if (state_reg == SETTLE && issue_reg) assert (trial_reg && wait_reg == SETTLED);
    if (was_tried_reg) assert (valid && state_reg == DECIDE);
    assert (!past || age + remaining <= BOUND);
    in_time: assert (!past || age <= BOUND);
end

always @(posedge clk) if (past && !rst) begin
    cover (take && stored && ends && start != 0);
    cover (take && was_tried_reg && merged && lanes_overflowed_reg == 0);
    cover (take && was_tried_reg && rejected && lanes_overflowed_reg);
    cover (take && past_mean == 0 && age > 40);
    cover (wrong_size);
    cover (overflow && !too_many);
end
