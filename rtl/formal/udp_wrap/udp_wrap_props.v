// What the sender of datagrams promises, for any payloads, any table and any pauses. This file is read inside `udp_wrap`. The
// headers are those of `udp_headers`, which has a proof of its own: its properties hold here, too.

(* hierconn *) wire            \headers.seen_valid , \headers.seen_frees , \headers.seen_picking ;
(* hierconn *) wire [BEAT-1:0] \headers.seen_beats ;
wire pick_valid = \headers.seen_valid ;
wire pick_frees = \headers.seen_frees ;
wire picking = \headers.seen_picking ;
wire [BEAT-1:0] pick_beats = \headers.seen_beats ;

// Each payload has exactly one fate, with its last beat.
wire [2:0] fates = fate[0] + fate[1] + fate[2] + fate[3];
always @* one_fate: assert (fates == ends);

// The memory: what leaves is before what is whole, and that before what comes. The beats of all payloads that are here are
// those of the payloads that wait, and of those whose last datagram was begun.
wire [ADDRESS:0] inside = write_reg - free_reg;
wire [ADDRESS:0] whole = frame_reg - free_reg;
wire [ADDRESS:0] coming = write_reg - frame_reg;
wire [FRAME:0]   frames = frame_write_reg - frame_read_reg;
wire [FRAME-1:0] head_at = frame_read_reg[FRAME-1:0];
wire [FRAME-1:0] next_at = head_at + 1'b1;
wire [BEAT-1:0]  head_beats = about_mem[head_at] >> 24 + PORTS;
wire [BEAT-1:0]  other_beats = about_mem[next_at] >> 24 + PORTS;
wire [ADDRESS+2:0] owned = (frames > 0 ? head_beats : 0) + (frames > 1 ? other_beats : 0)
    + (pick_valid && pick_frees ? pick_beats : 0) + (next_valid && next_frees ? next_beats : 0);
wire [PORTS-1:0] head_receivers = about_mem[head_at];
wire [PORTS-1:0] other_receivers = about_mem[next_at];
wire [15:0] head_bytes = about_mem[head_at] >> 8 + PORTS;
wire [15:0] other_bytes = about_mem[next_at] >> 8 + PORTS;
always @* begin
    assert (inside <= DEPTH);
    assert (frames <= FRAMES);
    assert (coming == beats_reg && beats_reg <= BEATS);
    all_here: assert (owned == whole);
    assert (whole <= inside);
    if (frames > 0) begin
        assert (head_beats >= 1 && head_beats <= BEATS && head_receivers != 0);
        assert (head_bytes <= BYTES * head_beats && head_bytes + BYTES >= BYTES * head_beats);
    end
    if (frames > 1) begin
        assert (other_beats >= 1 && other_beats <= BEATS && other_receivers != 0);
        assert (other_bytes <= BYTES * other_beats && other_bytes + BYTES >= BYTES * other_beats);
    end
    // Behind a datagram that is not its payload's last one comes another one of it.
    if (picking) assert (frames > 0);
    if (pick_valid) assert (pick_beats >= 1 && pick_beats <= BEATS);
    if (pick_valid && !pick_frees) assert (picking && head_beats == pick_beats);
    if (next_valid) assert (next_beats >= 1 && next_beats <= BEATS);
    if (next_valid && !next_frees) begin
        if (pick_valid) assert (pick_beats == next_beats);
        else assert (picking && head_beats == next_beats);
    end
    if (next_valid) its_beats_are_here: assert (next_beats <= whole);
    // The input waits for a payload that leaves, never for itself.
    if (!s_axis_tready) no_deadlock: assert (whole != 0 && (frames > 0 || pick_valid || next_valid));
end

// An offered beat stays, unchanged, until it is taken. With a ready sink a datagram moves on in each cycle.
reg past = 0, past_rst, past_waits;
reg [9*BYTES+PORTS+16:0] past_beat;
wire [9*BYTES+PORTS+16:0] out_beat = {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser};
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= m_axis_tvalid && !m_axis_tready;
    past_beat <= out_beat;
end
always @* begin
    if (past && !past_rst && past_waits) begin
        stays: assert (m_axis_tvalid);
        unchanged: assert (out_beat == past_beat);
    end
    if (m_axis_tready && next_valid) no_pause: assert (done || reads);
    assert (next_valid || place_reg == 0);
    if (next_valid) assert (place_reg <= next_end);
    if (next_valid && !next_send) assert (place_reg == 0);
end

// Each datagram that begins to leave ends once.
reg [3:0] began = 0, ended = 0;
always @(posedge clk) begin
    began <= rst ? 0 : began + sent;
    ended <= rst ? 0 : ended + (m_axis_tvalid && m_axis_tready && m_axis_tlast);
end
wire [3:0] under_way = began - ended;
always @* begin
    none_lost: assert (under_way == (place_reg != 0) + (read_valid_reg && read_last_reg)
        + (valid_reg && last_reg));
end

// The bytes of a frame: those of the header that was made when it began, then the payload's, then zeros. The prover picks a
// payload by its number since the reset, and a byte of its frames.
`ifndef WITHOUT_DATA
(* anyconst *) reg [1:0] watched;
(* anyconst *) reg [6:0] offset;
wire [6:0] of_payload = offset - HEADER;
reg [1:0] payloads_in = 0, payloads_out = 0, read_number, out_number;
reg [BEAT-1:0] read_place, out_place;
reg seen = 0;
reg [7:0] shadow, head_byte, read_head, out_head;
reg [15:0] length, size;
wire [7:0] comes = s_axis_tdata >> 8*(of_payload % BYTES);
wire [7:0] head_comes = header >> 8*(HEADER - 1 - offset);
wire [7:0] leaves = m_axis_tdata >> 8*(offset % BYTES);
always @(posedge clk) begin
    if (takes && payloads_in == watched && beats_reg == of_payload / BYTES) shadow <= comes;
    if (kept) payloads_in <= payloads_in + 1'b1;
    if (kept && payloads_in == watched && !seen) {seen, length} <= {1'b1, bytes};
    if (sent) head_byte <= head_comes;
    if (done && next_frees) payloads_out <= payloads_out + 1'b1;
    if (moves) {read_number, read_place} <= {payloads_out, place_reg};
    if (moves) {out_number, out_place, out_head} <= {read_number, read_place, head_byte};
    if (rst) {payloads_in, payloads_out, seen} <= 0;
end
// Numbers begin again after the fourth payload; the prover looks at the first four.
reg [2:0] count = 0;
always @(posedge clk) count <= rst ? 0 : count + (kept && count != 4);
wire [15:0] frame_size = length + HEADER < 60 ? 60 : length + HEADER;
always @* if (m_axis_tvalid && seen && count != 4 && out_number == watched) begin
    its_length: assert (m_axis_tuser[15:0] == frame_size);
    its_end: assert (m_axis_tlast == ((out_place + 1) * BYTES >= frame_size));
    if (out_place == offset / BYTES) begin
        its_keep: assert (m_axis_tkeep[offset % BYTES] == (offset < frame_size));
        if (offset < HEADER) its_header: assert (leaves == out_head);
        else if (of_payload < length) its_payload: assert (leaves == shadow);
        else padding: assert (leaves == 0);
    end
end
always @* if (past && !rst) begin
    cover (m_axis_tvalid && m_axis_tready && seen && out_number == watched && watched == 1
        && out_place == offset / BYTES && offset > HEADER && of_payload < length);
end
`endif

always @* if (past && !rst) begin
    cover (ended == 3 && place_reg == 2);
    cover (no_entry && under_way != 0);
    cover (!s_axis_tready && m_axis_tvalid);
    cover (fate[1]);
    cover (m_axis_tvalid && m_axis_tlast && m_axis_tkeep == 1);
    cover (past_waits && sent);
end
