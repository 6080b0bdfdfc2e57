// What the counters of the queue promise, for any events and any host. This file is read inside `olaf_queue_counters`, with
// `axil_block`, and with any answers in place of `event_counters`.

// An update has one fate. It is rejected for one reason.
always @* begin
    assume ((fate & (fate - 1'b1)) == 0);
    assume (!(wrong_size && overflow));
    if (wrong_size || overflow) assume (fate[5]);
end

// Each event counts in the counter of its number. An update is in exactly one of the counters 6 to 13.
reg past = 0, past_rst;
reg past_framing, past_too_long, past_refused, past_passed, past_no_room, past_stamped, past_ended;
reg past_wrong_size, past_overflow;
reg [5:0] past_fate;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    {past_framing, past_too_long, past_refused} <= {framing, too_long, refused};
    {past_passed, past_no_room, past_stamped, past_ended} <= {passed, no_room, stamped, ended};
    {past_wrong_size, past_overflow, past_fate} <= {wrong_size, overflow, fate};
end
always @* assume (past || rst);
wire [3:0] counted = frame_reg[6] + frame_reg[7] + frame_reg[8] + frame_reg[9] + frame_reg[10] + frame_reg[11]
    + frame_reg[12] + frame_reg[13];
always @* if (past && !past_rst) begin
    frames: assert (frame_reg[0] == past_framing && frame_reg[1] == past_too_long && frame_reg[2] == past_refused);
    ways: assert (frame_reg[3] == past_passed && frame_reg[4] == past_no_room && frame_reg[5] == past_stamped);
    fates: assert (frame_reg[6] == past_fate[0] && frame_reg[7] == past_fate[1] && frame_reg[8] == past_fate[2]
                   && frame_reg[9] == past_fate[3] && frame_reg[10] == past_fate[4]);
    reasons: assert (frame_reg[12] == past_wrong_size && frame_reg[13] == past_overflow);
    one_of_eight: assert (counted == (past_fate != 0));
    departs: assert (frame_reg[14] == past_ended);
end
always @* if (past && past_rst) none_after_reset: assert (frame_reg == 0 && fate_reg == 0 && !ended_reg);

// The contributors of a fate, of replaced entries and of departures: no number is lost or counted twice. A number is counted
// in the cycle after its event. The prover picks the fate.
(* anyconst *) reg [2:0] picked;
always @* assume (picked < 6);
reg hit = 0, replaces = 0, departs_now = 0;
reg [31:0] amount, displaced_amount, departing_amount;
reg [63:0] total = 0, displaced_total = 0, departed_total = 0;
always @(posedge clk) begin
    {hit, replaces, departs_now} <= {fate[picked], fate[2], ended};
    {amount, displaced_amount, departing_amount} <= {contributors, displaced, departing_contributors};
    if (hit) total <= total + amount;
    if (replaces) displaced_total <= displaced_total + displaced_amount;
    if (departs_now) departed_total <= departed_total + departing_amount;
    if (rst) {hit, replaces, departs_now, total, displaced_total, departed_total} <= 0;
end
always @* if (past) begin
    assert (fate_reg[picked] == hit && fate_reg[2] == replaces && ended_reg == departs_now);
    assert ((fate_reg & (fate_reg - 1'b1)) == 0);
    if (hit) assert (contributors_reg == amount);
    if (replaces) assert (displaced_reg == displaced_amount);
    if (departs_now) assert (departing_reg == departing_amount);
    if (written_reg[picked]) assert (by_fate_reg[picked] == total);
    else assert (total == 0);
    assert (displaced_total_reg == displaced_total && departed_total_reg == departed_total);
end

// A read of a low half gives the number of that instant, and keeps its high half for the read of the high half that follows.
localparam [8:0] OF_FATE = 15, OF_REPLACED = 21, OF_DEPARTED = 22;
wire takes = s_axil_arvalid && s_axil_arready;
wire [8:0] number = s_axil_araddr[11:3] - 9'd2;
wire [8:0] asked_for = OF_FATE + picked;
wire low_read = takes && s_axil_araddr[2:0] == 0 && s_axil_araddr[11:3] >= 2 && number < 23;
wire high_read = takes && s_axil_araddr[2:0] == 4 && s_axil_araddr[11:3] >= 2 && number < 23;
wire is_known = number == asked_for || number == OF_REPLACED || number == OF_DEPARTED || number < 15;
wire [63:0] now = number == OF_REPLACED ? displaced_total : number == OF_DEPARTED ? departed_total
    : number < 15 ? of_events : total;
reg        kept = 0, answers = 0, was_high;
reg [31:0] high_half, answer;
always @(posedge clk) begin
    if (low_read) {kept, high_half} <= {is_known, now[63:32]};
    if (takes) begin
        was_high <= high_read;
        answers <= (low_read && is_known) || (high_read && kept);
        answer <= low_read ? now[31:0] : high_half;
    end
    if (rst) {kept, answers} <= 0;
end
(* hierconn *) wire [31:0] \block.high_reg ;
wire [31:0] high_reg = \block.high_reg ;
always @* if (past) begin
    if (kept) assert (high_reg == high_half);
    if (s_axil_rvalid && answers) gives: assert (s_axil_rdata == answer && s_axil_rresp == 0);
    if (asks_event) its_event: assert (low_read && number < 15 && asked == number);
end

always @* if (past && !rst) begin
    more: cover (s_axil_rvalid && answers && answer == 5 && total == 7 && picked == 5);
    high: cover (s_axil_rvalid && answers && was_high && answer == 32'h12345678);
    rejected: cover (frame_reg[13] && hit && amount == 3);
end
