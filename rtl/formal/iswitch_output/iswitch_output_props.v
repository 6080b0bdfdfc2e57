// What the output promises. This file is read inside `iswitch_output`. Proved by induction.

// The writer keeps to the room (proved of `iswitch_sum`).
always @* if (s_valid) assume (used_reg != DEPTH);

// An offered beat stays, unchanged, until it is taken.
reg past = 0, past_waits, past_rst;
reg [WIDTH-1:0] past_beat;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= m_valid && !m_ready;
    past_beat <= m_beat;
end
always @* if (past && !past_rst && past_waits) begin
    stays: assert (m_valid);
    unchanged: assert (m_beat == past_beat);
end

// The beats leave in their order, none lost or doubled: the prover picks one, and how many are before it.
(* anyseq *) wire pick;
reg watching = 0;
reg [WIDTH-1:0] watched;
reg [ADDRESS+1:0] ahead = 0;
wire leaves = m_valid && m_ready;
always @(posedge clk) begin
    if (!watching && pick && s_valid) begin
        watching <= 1;
        watched <= s_beat;
        ahead <= used_reg + valid_reg - leaves;
    end else if (watching && leaves) begin
        if (ahead == 0) watching <= 0;
        ahead <= ahead - 1'b1;
    end
    if (rst) watching <= 0;
end
wire [ADDRESS-1:0] place = read_reg + ahead - valid_reg;
always @* begin
    assert (used_reg <= DEPTH && write_reg == (read_reg + used_reg) % DEPTH);
    if (watching) begin
        assert (ahead < used_reg + valid_reg);
        if (ahead == 0 && valid_reg) in_order: assert (m_beat == watched);
        else stored: assert (beat_mem[place] == watched);
    end
end

// A sink that is ready gets a beat in the cycle after one was stored.
reg past_used = 0;
always @(posedge clk) past_used <= used_reg != 0 && !rst;
always @* if (past_used) moves: assert (m_valid);

always @* if (past) begin
    cover (used_reg == DEPTH && past_waits);
    cover (watching && ahead == 0 && leaves && used_reg == 2);
end
