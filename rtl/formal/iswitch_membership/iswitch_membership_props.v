// What the membership promises, for any messages that `iswitch_control` may ask about. This file is read inside
// `iswitch_membership`.

reg past = 0, past_rst, joining = 0;
localparam MESSAGE = PORT + 8 + 32 + 32 + 1 + 32 + 11 + 11 + 32 + 32;
wire [MESSAGE-1:0] message = {port, generation, job, session, from_switch, rank, workers, contributors, packet_floats,
                              operations};
reg [MESSAGE-1:0] past_message;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_message <= message;
    joining <= !rst && (join_first || (joining && !join_second));
end
// The first step of a Join is followed by the second one, for which the next generation may begin before. One message at a
// time; none while a generation is about to begin. Joins are well formed (`iswitch_message`).
always @* begin
    assume (past || rst);
    assume (port < PORTS);
    assume (join_second == (joining && !complete));
    if (joining) assume (message == past_message && !join_first && !leave && !end_generation);
    if (joining && complete) assume (begin_generation);
    assume (join_first + leave + end_generation <= 1);
    if (begin_generation) assume (complete && !join_first && !leave && !end_generation);
    if (join_first || joining) assume (contributors >= 1 && contributors <= workers && packet_floats != 0);
end

// The members are those that waited when their generation began; each came with a Join and has not left the lobby since. The
// prover picks a port and keeps what its last Join said.
(* anyconst *) reg [PORT-1:0] picked;
always @* assume (picked < PORTS);
wire its = port == picked;
// In the lobby: with this life, so many workers behind it, and the floats of its packets.
reg waits = 0, member = 0;
reg [31:0] life, seated_life, floats, seated_floats;
reg [10:0] behind, seated_behind;
reg is_a_switch, seated_switch;
wire [10:0] its_behind = behind;
always @(posedge clk) begin
    if (enters && its) begin
        {waits, life, behind, floats, is_a_switch} <= {1'b1, session, contributors, packet_floats, from_switch};
    end else if (join_second && its && !is_in && fits && waits && life != session) waits <= 0;
    if (leave && its && waits && life == session && has_job_reg && job == job_reg) waits <= 0;
    if (begin_generation) begin
        member <= waits;
        {seated_life, seated_behind, seated_floats, seated_switch} <= {life, behind, floats, is_a_switch};
        waits <= 0;
    end
    if (deserted) member <= 0;
    if (rst) {waits, member} <= 0;
end
always @* if (past) begin
    as_joined: assert (waits_reg[picked] == waits && members[picked] == member);
    if (waits) as_said: assert (waiting_session_reg[picked] == life && waiting_weight_reg[picked] == behind
        && waiting_floats_reg[picked] == floats && waiting_switch_reg[picked] == is_a_switch);
    if (member) as_seated: assert (session_reg[picked] == seated_life && weight_reg[picked] == seated_behind
        && switch_reg[picked] == seated_switch);
    if (member && its) asked: assert (weight == seated_behind && is_switch == seated_switch);
    // The packets of a generation are no longer than any member's.
    if (member) shortest: assert (most_floats <= seated_floats);
    if (its) of_member: assert (seated == (member && generation == number));
end

// Workers of the lobby, and of the generation. They are never more than the job has; a generation has all of them, and one
// member at least.
reg [17:0] in_lobby, in_generation;
reg [PORT:0] seats;
integer m;
always @* begin
    {in_lobby, in_generation, seats} = 0;
    for (m = 0; m < PORTS; m = m + 1) begin
        in_lobby = in_lobby + (waits_reg[m] ? waiting_weight_reg[m] : 0);
        in_generation = in_generation + (member_reg[m] ? weight_reg[m] : 0);
        seats = seats + member_reg[m];
    end
end
always @* if (past) begin
    assert (workers_reg >= 1 || !has_job_reg);
    if (!has_job_reg) none: assert (waits_reg == 0 && member_reg == 0 && !open_reg);
    if (has_job_reg) room: assert (in_lobby <= workers_reg);
    for (m = 0; m < PORTS; m = m + 1) begin
        if (waits_reg[m]) assert (waiting_weight_reg[m] >= 1 && waiting_floats_reg[m] != 0);
        if (member_reg[m]) assert (weight_reg[m] >= 1);
    end
    if (member_reg != 0) all_of_them: assert (in_generation == all_workers);
    if (open) begin
        some: assert (seats >= 1 && seats <= PORTS && has_job_reg);
        floats_of_it: assert (most_floats != 0);
    end
    // A Join's first step has made it a job.
    if (joining) assert (has_job_reg);
    assert (!open_reg || !complete);
end

// Where has_rank_reg is set for two workers of the lobby, their ranks differ: no rank is given twice.
(* anyconst *) reg [PORT-1:0] other;
always @* assume (other < PORTS && other != picked);
always @* if (past && waits_reg[picked] && waits_reg[other] && has_rank_reg[picked] && has_rank_reg[other])
    ranks: assert (waiting_rank_reg[picked] != waiting_rank_reg[other]);

// When generations begin and end. Their numbers follow each other.
reg past_open, past_begin, past_ends, past_end;
reg [7:0] next_number, past_number;
reg [PORTS-1:0] past_members;
reg past_deserted;
always @(posedge clk) begin
    {past_open, past_begin, past_ends} <= {open, begin_generation, ends};
    past_end <= end_generation || (leave && !leave_refused && !leaves_lobby);
    {past_members, past_number, past_deserted} <= {members, number, deserted};
    next_number <= rst ? epoch : begin_generation ? next_number + 1'b1 : next_number;
end
always @* if (past) assert (next_reg == next_number);
always @* if (past && !past_rst) begin
    if (past_begin) begins: assert (open && number == next_number - 8'd1 && !past_open);
    if (!past_begin) goes_on: assert (open == (past_open && !past_ends) && number == past_number);
    if (!past_begin && !past_deserted) same: assert (members == past_members);
    if (past_end) over: assert (!open);
end
always @* if (past && ends) was_open: assert (open);
// A sender has left only if it was a member, and its generation is over.
always @* if (past) assert ((left_reg & ~member_reg) == 0 || member_reg == 0);
always @* if (past && open) nobody_left: assert (left_reg == 0);

always @* if (past && !rst) begin
    switches: cover (open && seats == 2 && switch_reg[0] && member_reg[0] && weight_reg[0] == 2 && all_workers == 3);
    second: cover (open && past_begin && number == epoch + 8'd1 && past && seats == 3);
    gives_up: cover (joining && join_second && enters && waits_reg == 0 && !open && member_reg != 0);
    refused: cover (join_refused && has_job_reg && in_lobby + contributors > workers_reg && fits);
    new_life: cover (clears && enters);
end
