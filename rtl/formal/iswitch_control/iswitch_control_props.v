// What the decisions promise about datagrams and jobs. This file is read inside `iswitch_control`, with its parts. Proved
// by induction, for any datagrams and any pauses.

// A datagram that is offered stays, unchanged, until it is taken. It is of a port.
reg past = 0, past_rst, past_waits, past_job;
localparam OFFER = 256 + LENGTH + BEAT + PORT + 6;
wire [OFFER-1:0] offer =
    {s_head, s_length, s_beats, s_port, s_control, s_marked, s_too_long,
     s_has_number, s_confirmed, proofs};
reg [OFFER-1:0] past_offer;
localparam JOB = BEAT + 4 + CELL + LENGTH + 1 + 64 + PORTS + 1;
wire [JOB-1:0] job = {job_in, job_store, job_add, job_send, job_from_cell, job_cell, job_length,
                      job_control, job_seg, job_to, job_marked};
reg [JOB-1:0] past_offered_job;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= s_valid && !s_ready;
    past_offer <= offer;
    past_job <= job_valid && !job_ready;
    past_offered_job <= job;
end
always @* begin
    assume (past || rst);
    if (past && !past_rst && past_waits) assume (s_valid && offer == past_offer);
    assume (s_port < PORTS);
end

// Each datagram is decided once, before it is taken, and has exactly one fate.
reg decided = 0;
always @(posedge clk) decided <= !rst && (decided || decides) && !s_ready;
function [4:0] ones(input [20:0] set);
    integer n;
    begin
        ones = 0;
        for (n = 0; n < 21; n = n + 1) ones = ones + set[n];
    end
endfunction
always @* begin
    if (past && !rst) begin
        one_fate: assert (ones(fate) == decides);
        if (decides) once: assert (!decided && s_valid);
        if (s_ready) after_decision: assert (s_valid && (decides || decided));
        assert (state_reg <= NAMED_DECIDE);
        if (!looking) working: assert (s_valid);
        if (state_reg == LOOK || deciding) assert (!decided);
        if (joining || naming || named) assert (decided);
        if (joining) assert (does_join);
        if (naming || named) assert (does_fbcast || does_help);
        if (named) assert (named_reg != 0);
    end
end

// A job waits, unchanged, until it is taken. No job is written over another. The beats of a datagram are
// taken once.
always @* if (past && !past_rst && past_job) begin
    waits: assert (job_valid);
    unchanged: assert (job == past_offered_job);
end
always @* if (past && !rst) begin
    if (pushes) not_over: assert (!job_valid);
    if (deciding || named) assert (!job_valid);
end
reg decided_before;
reg [BEAT-1:0] beats_before;
reg pushed_before, named_before;
always @(posedge clk) begin
    decided_before <= decides && !rst;
    named_before <= named && pushes && !rst;
    beats_before <= s_beats;
end
always @* if (past && !past_rst) begin
    if (decided_before) own_beats: assert (job_valid && job_in == beats_before);
    if (named_before) no_beats: assert (job_valid && job_in == 0);
end

// Where addresses have to be proved, a Join changes nothing unless the control plane confirms it.
always @* if (past && !rst && deciding && proofs && !s_confirmed && s_head[7:0] == 1 && s_control) begin
    unproven: assert (!ended && !began && s_ready && !join_refused && !message_of_no_member
                      && !message_of_unknown_generation);
end
always @* if (past && !rst && joining && proofs) proven: assert (s_confirmed);

always @* if (past && !rst) begin
    cover (began && proofs && joining);
    cover (began && decided);
    cover (fate[0] && sends_sum);
    cover (named && sends_again && job_to != 0);
    cover (ended && given_up != 0);
end
