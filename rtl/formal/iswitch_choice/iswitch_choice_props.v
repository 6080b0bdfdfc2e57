// What the choice among queues promises. This file is read inside `iswitch_choice`. Proved by induction.

// A queue that offers a beat keeps it until it is taken.
reg past = 0, past_rst;
reg [QUEUES-1:0] past_waits;
reg [QUEUES*WIDTH-1:0] past_beats;
reg past_held;
reg [WIDTH+QUEUE-1:0] past_out;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= s_valid & ~s_ready;
    past_beats <= s_beat;
    past_held <= m_valid && !m_ready;
    past_out <= {m_beat, m_queue};
end
integer q;
always @* if (past && !past_rst)
    for (q = 0; q < QUEUES; q = q + 1)
        if (past_waits[q])
            assume (s_valid[q] && s_beat[WIDTH*q +: WIDTH] == past_beats[WIDTH*q +: WIDTH]);

// An offered beat stays, unchanged, until it is taken.
always @* if (past && !past_rst && past_held) begin
    stays: assert (m_valid);
    unchanged: assert ({m_beat, m_queue} == past_out);
end

// No beat is lost or doubled: one comes in at a time, and is the next that leaves.
reg [2:0] came = 0, left = 0;
always @(posedge clk) begin
    came <= rst ? 0 : came + (s_ready != 0);
    left <= rst ? 0 : left + (m_valid && m_ready);
end
always @* begin
    none_lost: assert (came == left + valid_reg);
    one_at_a_time: assert ((s_ready & (s_ready - 1'b1)) == 0);
    only_offered: assert ((s_ready & ~s_valid) == 0);
    // A sink that is ready keeps nobody waiting.
    if (m_ready && (inside_reg ? s_valid[serving_reg] : s_valid != 0)) no_stall: assert (s_ready != 0);
    assert (serving_reg < QUEUES);
end

// Frames do not mix: behind a beat that is not a last one comes one of the same queue.
reg open = 0;
reg [QUEUE-1:0] of;
always @(posedge clk) begin
    if (m_valid && m_ready) begin
        open <= !m_beat[0];
        of <= m_queue;
    end
    if (rst) open <= 0;
end
always @* begin
    if (m_valid && open) no_mix: assert (m_queue == of);
    if (valid_reg) assert (inside_reg == !beat_reg[0] && serving_reg == queue_reg);
    if (!valid_reg) assert (inside_reg == open && (!open || serving_reg == of));
end

// A frame that waits is overtaken at most once by each other queue. The prover picks both queues.
(* anyconst *) reg [QUEUE-1:0] waiting, other;
reg overtaken = 0;
always @* assume (waiting < QUEUES && other < QUEUES && waiting != other);
wire begins = s_ready != 0 && !inside_reg;
always @(posedge clk) begin
    if (begins && chosen == other && s_valid[waiting]) overtaken <= 1;
    if ((begins && chosen == waiting) || rst || !s_valid[waiting]) overtaken <= 0;
end
wire [QUEUE:0] far_waiting = waiting > serving_reg ? waiting - serving_reg
    : waiting + QUEUES - serving_reg;
wire [QUEUE:0] far_other = other > serving_reg ? other - serving_reg : other + QUEUES - serving_reg;
always @* begin
    if (overtaken) assert (far_waiting < far_other);
    if (overtaken && past && !past_rst) assert (s_valid[waiting]);
    if (overtaken && begins) in_turns: assert (chosen != other);
end

always @* if (past && !rst) begin
    cover (overtaken && begins && chosen == waiting);
    cover (past_held && m_valid && m_ready && open);
end
