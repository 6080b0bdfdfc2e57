// What the store of frames promises. This file is read inside `frame_store`. Beats are narrow: nothing depends on
// their width.

// The writer waits where it is told to.
always @* if (write) assume (write_ready);

// The pointers: what is read is before what is whole, and that before what is written; no more than fits.
wire [ADDRESS:0] whole = frame_reg - read_reg;
wire [ADDRESS:0] inside = write_reg - read_reg;
wire [ADDRESS:0] coming = write_reg - frame_reg;
always @* begin
    assert (inside <= DEPTH);
    assert (whole <= inside);
    // The writer waits for a reader alone: a frame that waits has something before it to read.
    if (!write_ready) no_deadlock: assert (whole != 0);
end

// An offered beat stays, unchanged, until it is taken.
reg past = 0, past_rst, past_waits;
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

// A frame is too long exactly if it has more beats than the memory. Beats of the frame that comes are counted, up to
// one more than that.
reg [ADDRESS:0] beats = 0;
wire [ADDRESS:0] with_this = beats + (write && beats <= DEPTH);
always @(posedge clk) beats <= finish || rst ? 0 : with_this;
always @* begin
    length: assert (too_long == (with_this > DEPTH));
    assert (beats <= DEPTH + 1);
    assert (lost_reg == (beats > DEPTH));
    assert (coming == (beats > DEPTH ? DEPTH : beats));
end

// Nothing is lost or doubled. The prover picks a beat by its number since the reset, of those that were kept:
// what leaves as that number is what came as it. Numbers of beats of a forgotten frame are given again.
localparam NUMBER = ADDRESS + 2;
(* anyconst *) reg [NUMBER-1:0] watched;
reg [NUMBER-1:0] came = 0, began = 0, left = 0;
reg [WIDTH-1:0] shadow;
reg seen = 0;
wire out = m_valid && m_ready;
wire [NUMBER-1:0] came_next = came + stores;
always @(posedge clk) begin
    came <= came_next;
    if (finish) begin
        if (keep && with_this <= DEPTH) began <= came_next;
        else came <= began;
    end
    if (out) left <= left + 1'b1;
    if (stores && came == watched) {seen, shadow} <= {1'b1, write_beat};
    if (out && left == watched) seen <= 0;
    if (rst) {came, began, left, seen} <= 0;
end
wire [NUMBER-1:0] read_next = left + m_valid;
always @* begin
    // The numbers are the pointers, with the beat at the output before them.
    assert (came - began == {1'b0, coming});
    none_lost: assert (began - read_next == {1'b0, whole});
    assert (came - read_next == {1'b0, inside});
end
`ifndef WITHOUT_DATA
always @* if (m_valid && left == watched && seen) in_order: assert (m_beat == shadow);
`endif

// With a ready sink whole frames leave without a pause.
always @(posedge clk) if (past && !past_rst && !rst && $past(m_ready) && $past(whole) != 0)
    no_pause: assert (m_valid);

always @(posedge clk) if (!rst) begin
    cover (finish && keep && !write && inside == DEPTH);
    cover (finish && keep && with_this > DEPTH && m_valid);
    cover (!write_ready && with_this == DEPTH - 1);
    cover (out && left == watched && watched == DEPTH);
    cover (finish && !keep && came != began && whole != 0);
end
