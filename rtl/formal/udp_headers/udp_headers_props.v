// What the maker of headers promises, for any payloads, any table and any pauses. This file is read inside `udp_headers`.

// A payload that is offered stays; it has a receiver and fits a datagram.
reg past = 0, past_rst, past_s, past_m;
reg [BEAT+24+PORTS-1:0] past_payload;
wire [BEAT+24+PORTS-1:0] payload = {s_beats, s_bytes, s_tos, s_receivers};
wire [2*BEAT+16+PORTS+2+336-1:0] datagram = {
    m_send, m_frees, m_beats, m_bytes, m_end, m_receiver, m_header};
reg [2*BEAT+16+PORTS+2+336-1:0] past_datagram;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_s <= s_valid && !s_ready;
    past_payload <= payload;
    past_m <= m_valid && !m_ready;
    past_datagram <= datagram;
end
always @* begin
    if (past && !past_rst && past_s) assume (s_valid && payload == past_payload);
    if (s_valid) assume (s_beats <= (1 << BEAT) - 3);
    if (s_valid) assume (s_receivers != 0 && s_bytes <= BYTES * s_beats && s_bytes + BYTES >= BYTES * s_beats);
end

// An offered datagram stays, unchanged, until it is taken.
always @* if (past && !past_rst && past_m) begin
    stays: assert (m_valid);
    unchanged: assert (datagram == past_datagram);
end

// Each payload has one datagram for each receiver, lowest first. Receivers are counted off, in the two steps here and in the
// payload that is offered: none is lost or doubled.
wire picks_one = picks && s_valid;
reg [3:0] owed = 0, given = 0;
reg [PORTS-1:0] done = 0;
wire [PORTS-1:0] one = pending & ~after;
always @(posedge clk) begin
    owed <= rst ? 0 : owed + picks_one;
    given <= rst ? 0 : given + (m_valid && m_ready);
    if (picks_one) done <= after == 0 ? 0 : done | one;
    if (rst) done <= 0;
end
always @* begin
    none_lost: assert (owed - given == pick_valid_reg + valid_reg);
    assert (picking_reg == (done != 0));
    if (picking_reg && s_valid) assert (rest_reg == (s_receivers & ~done) && rest_reg != 0 && (done & ~s_receivers) == 0);
    if (picking_reg) assert (done < (rest_reg & ~(rest_reg - 1'b1)));
    if (picking_reg && past && !past_rst) assert (s_valid);
    if (picks_one) begin
        a_receiver: assert ((one & s_receivers) == one && one != 0 && (one & (one - 1'b1)) == 0);
        once: assert ((done & one) == 0);
        in_order: assert (done < one);
        its_entry: assert (one[lookup]);
        at_the_end: assert (s_ready == ((done | one) == s_receivers));
    end
    taken_with_its_last: assert (!(s_valid && s_ready) || picks_one);
end

// A step keeps what it knows: the payload and the entry of the receiver that was picked, one step later and two.
reg [BEAT+24-1:0] at_pick, at_sum;
reg [95:0] entry_at_pick, entry_at_sum;
reg sends_at_pick, sends_at_sum, ends_at_pick, ends_at_sum;
reg [PORTS-1:0] to_at_pick, to_at_sum;
always @(posedge clk) begin
    if (picks_one) {at_pick, entry_at_pick, sends_at_pick, ends_at_pick, to_at_pick} <=
        {s_beats, s_bytes, s_tos, entry, entry_valid, (done | one) == s_receivers, one};
    if (pick_valid_reg && moves) {at_sum, entry_at_sum, sends_at_sum, ends_at_sum, to_at_sum} <=
        {at_pick, entry_at_pick, sends_at_pick, ends_at_pick, to_at_pick};
end
wire [BEAT-1:0] of_beats;
wire [15:0] of_bytes;
wire [7:0] of_tos;
assign {of_beats, of_bytes, of_tos} = at_sum;
wire [15:0] bytes_at_pick = at_pick[8 +: 16];
wire [16:0] of_frame = of_bytes + 42 < 60 ? 60 : of_bytes + 42;
always @* begin
    if (pick_valid_reg) begin
        assert ({pick_beats_reg, pick_bytes_reg, pick_tos_reg} == at_pick);
        assert ({pick_entry_reg, pick_send_reg, pick_frees_reg, pick_receiver_reg}
            == {entry_at_pick, sends_at_pick, ends_at_pick, to_at_pick});
        assert (bytes_at_pick <= BYTES * at_pick[24 +: BEAT] && at_pick[24 +: BEAT] <= (1 << BEAT) - 3);
    end
    if (m_valid) begin
        its_receiver: assert (m_send == sends_at_sum && m_frees == ends_at_sum && m_receiver == to_at_sum);
        its_size: assert (m_beats == of_beats && m_bytes == of_frame && m_end == (of_frame - 1) / BYTES);
        assert (of_bytes <= BYTES * of_beats && of_beats <= (1 << BEAT) - 3);
        assert ({bytes_reg, tos_reg, entry_reg} == {of_bytes, of_tos, entry_at_sum});
    end
end

// The header of a datagram, field by field, and that its ten words of IPv4 add up: `sum_reg` is the sum of the other nine.
wire [19:0] words = sum_reg + m_header[336 - 8*24 - 1 -: 16];
wire [16:0] once_folded = words[15:0] + words[19:16];
wire [15:0] twice_folded = once_folded[15:0] + once_folded[16];
function [7:0] field(input [5:0] at);
    field = m_header >> 8*(41 - at);
endfunction
always @* if (m_valid) begin
    to: assert (m_header[335 -: 48] == entry_at_sum[95:48]);
    is_ip: assert ({field(12), field(13), field(14)} == 24'h080045);
    tos: assert (field(15) == of_tos);
    length_of_ip: assert ({field(16), field(17)} == of_bytes + 28);
    whole: assert ({field(18), field(19), field(20), field(21)} == 32'h4000);
    udp: assert ({field(22), field(23)} == 16'h4011);
    addresses: assert ({field(30), field(31), field(32), field(33)} == entry_at_sum[47:16]);
    ports: assert ({field(36), field(37)} == entry_at_sum[15:0]);
    length_of_udp: assert ({field(38), field(39)} == of_bytes + 8);
    no_udp_checksum: assert ({field(40), field(41)} == 0);
    assert (sum_reg == 20'h4500 + of_tos + of_bytes + 28 + 20'h4000 + 20'h4011 + sender_reg[47:32]
        + sender_reg[31:16] + entry_reg[47:32] + entry_reg[31:16]);
    adds_up: assert (twice_folded == 16'hffff);
end

always @* if (past && !rst) begin
    cover (m_valid && m_ready && m_frees && given == 4);
    cover (m_valid && m_end == 1 && m_beats == 1 && m_bytes == 60);
    cover (m_valid && sum_reg[19:16] == 4 && !m_send);
    cover (past_m && picking_reg && pick_valid_reg);
end

// What the proof of `udp_wrap` looks at. Registers would lose their first values there.
wire seen_valid = pick_valid_reg;
wire seen_frees = pick_frees_reg;
wire seen_picking = picking_reg;
wire [BEAT-1:0] seen_beats = pick_beats_reg;
