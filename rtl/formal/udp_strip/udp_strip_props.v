// What the separator promises, for any frames and any pauses. This file is read inside `udp_strip`, with a store in place of
// `frame_store` that answers anything: that one has a proof of its own.

// Beats of the frame whose beat was taken last, from 0; beyond the longest datagram they are not counted on.
localparam NUMBER = 17;
localparam [NUMBER-1:0] MANY = 17'h1000;
reg [NUMBER-1:0] number = 0;
reg inside = 0;
wire [NUMBER-1:0] number_next = !inside ? 0 : number == MANY ? MANY : number + 1'b1;
always @(posedge clk) begin
    if (takes) number <= number_next;
    if (takes) inside <= !s_axis_tlast;
    if (rst) inside <= 0;
end

// One fate each: of the frames that ended at the input, only the one whose last beat is held has none yet.
reg [3:0] ended = 0, fated = 0;
wire [2:0] fates = fate[0] + fate[1] + fate[2] + fate[3] + fate[4] + fate[5] + fate[6];
always @(posedge clk) begin
    ended <= rst ? 0 : ended + (takes && s_axis_tlast);
    fated <= rst ? 0 : fated + fates;
end
always @* begin
    one_fate: assert (ended - fated == (hold_valid_reg && hold_last_reg));
    assert (fates <= 1);
    passes: assert (fate[6] == (ends && good && !too_long));
    if (inside) assert (hold_valid_reg && !hold_last_reg);
    if (hold_valid_reg && !hold_last_reg) assert (inside);
    if (!inside) assert (place_reg == 0);
    if (inside) assert (place_reg == (number == 0 ? 1 : 2));
    assert (number <= MANY);
end

// A beat is taken in each cycle in which the store has room.
always @* if (store_ready) no_stall: assert (s_axis_tready);

// What the frame that is held said of itself: its first 42 bytes, one by one, and its size.
reg [8*HEADER-1:0] said;
reg [NUMBER+COUNT:0] size;
reg wrong;
wire [NUMBER+COUNT:0] base = number_next * BYTES;
integer m, n;
reg hole;
reg [COUNT:0] ones;
always @* begin
    hole = !s_axis_tkeep[0];
    ones = 0;
    for (n = 0; n < BYTES; n = n + 1) begin
        ones = ones + s_axis_tkeep[n];
        if (n > 0 && s_axis_tkeep[n] && !s_axis_tkeep[n-1]) hole = 1;
        if (!s_axis_tkeep[n] && !s_axis_tlast) hole = 1;
    end
end
always @(posedge clk) if (takes) begin
    for (m = 0; m < HEADER; m = m + 1)
        if (m / BYTES == number_next) said[8*m +: 8] <= s_axis_tdata[8*(m % BYTES) +: 8];
    size <= base + ones;
    wrong <= hole || (inside && wrong);
end

wire [15:0] of_ip = {said[8*16 +: 8], said[8*17 +: 8]};
wire [15:0] of_udp = {said[8*38 +: 8], said[8*39 +: 8]};
reg [19:0] words;
integer k;
always @* begin
    words = 0;
    for (k = 14; k < 34; k = k + 2) words = words + {said[8*k +: 8], said[8*k+8 +: 8]};
end
// The header is there.
wire header_here = number >= FIRST;
wire is_datagram = said[8*12 +: 8] == 8'h08 && said[8*13 +: 8] == 0 && said[8*14 +: 8] == 8'h45
    && said[8*23 +: 8] == 17;
wire is_part = {said[8*20 +: 8], said[8*21 +: 8]} % 16'h4000 != 0;
wire [16:0] once = words[15:0] + words[19:16];
wire [15:0] twice = once[15:0] + once[16];
wire sums_up = twice == 16'hffff;
wire lengths_fit = of_ip == of_udp + 20 && of_udp >= 8 && size >= of_udp + 34;

generate
    if (FIRST == 1) begin : g_first
        always @* if (inside && number == 0) assert (g_two_beats.first_reg == said[DATA-1:0]);
    end
endgenerate
always @* if (hold_valid_reg) begin
    assert (framing_reg == wrong);
    if (!wrong) assert (size < 18'h20000 ? bytes_reg == size : bytes_reg[17]);
    if (!wrong && hold_last_reg) assert (size > number * BYTES && size <= (number + 1) * BYTES);
    if (!wrong && !hold_last_reg) assert (size == (number + 1) * BYTES);
    if (!header_here && !wrong) assert (size <= BYTES);
    if (header_here) begin
        assert (is_udp_reg == is_datagram);
        assert (fragment_reg == is_part);
        assert (sum_reg == words);
        assert (udp_length_reg == of_udp);
        assert (lengths_agree_reg == (of_ip == of_udp + 20 && of_udp >= 8));
        assert (about_reg == {said[8*26 +: 8], said[8*27 +: 8], said[8*28 +: 8], said[8*29 +: 8],
            said[8*34 +: 8], said[8*35 +: 8], said[8*15 +: 8]});
    end
end
always @* if (ends) begin
    if (fate[0]) holes: assert (wrong);
    if (fate[1]) other: assert (!wrong && (size < HEADER || !is_datagram));
    if (fate[2]) part: assert (!wrong && size >= HEADER && is_datagram && is_part);
    if (fate[3]) sum_wrong: assert (!wrong && size >= HEADER && is_datagram && !is_part && !sums_up);
    if (fate[4]) lengths: assert (sums_up && !lengths_fit);
    if (fate[6]) whole: assert (!wrong && size >= HEADER && is_datagram && !is_part && sums_up && lengths_fit);
end

// The payload of a frame that passes: each byte once, in its order, zeros behind, and the last beat where it ends. Beats are
// numbered by the beat that is held; the store has all of them when the frame ends.
wire [NUMBER-1:0] place = number - FIRST;
wire [15:0] payload = of_udp - 8;
wire [23:0] sent_before = place * BYTES;
always @* if (hold_valid_reg) begin
    assert (hold_payload_reg == header_here);
    if (header_here && number != MANY) begin
        // `left_reg` counts from the payload's length down to zero or below, where it is closed.
        assert (open_reg == (place == 0 || sent_before < payload));
        if (open_reg) assert (left_reg == payload - sent_before[15:0]);
    end
    if (header_here && number == MANY) assert (!open_reg);
end
wire writes = moves && emits;
always @* if (writes) begin
    last_beat: assert (is_end == (sent_before + BYTES >= payload));
    in_room: assert (store_ready);
end
// When a good frame ends, its payload has ended: with this beat, or before it.
always @* if (ends && good) all_sent: assert (!open_reg || is_end);

// The prover picks a byte of the payload.
(* anyconst *) reg [15:0] watched;
wire [NUMBER-1:0] watched_place = watched / BYTES;
wire [COUNT-1:0]  watched_byte = watched % BYTES;
// Where it stands in the frame.
wire [NUMBER-1:0] at_beat = (watched + HEADER) / BYTES;
wire [COUNT-1:0]  at_byte = (watched + HEADER) % BYTES;
reg [7:0] shadow;
wire [7:0] comes = s_axis_tdata >> 8*at_byte;
wire [DATA-1:0] held = hold_reg << 8*SHIFT;
wire [7:0] held_there = held >> 8*at_byte;
wire [7:0] sent_there = clean >> 8*watched_byte;
always @(posedge clk) if (takes && number_next == at_beat) shadow <= comes;
always @* begin
    if (hold_valid_reg && number == at_beat && number != MANY && at_byte >= SHIFT)
        assert (held_there == shadow);
    if (writes && place == watched_place) begin
        if (watched >= payload) zeros: assert (sent_there == 0);
        // It is in the beat that is held, or in the one that comes.
        else if (at_byte >= SHIFT) from_held: assert (sent_there == shadow);
        else if (!hold_last_reg) from_next: assert (sent_there == comes && number + 1'b1 == at_beat);
        else missing: assert (!good);
        its_keep: assert (keep[watched_byte] == (watched < payload));
    end
end

always @* if (!rst) begin
    cover (fate[6] && payload == 0);
    cover (fate[6] && number == FIRST + 2 && size > of_udp + 34 && !emits);
    cover (fate[6] && place == 1 && writes && is_end && left_reg == BYTES - SHIFT);
    cover (fate[4] && size >= 60);
    cover (fate[3] && size >= 60 && lengths_fit);
    cover (fate[2]);
    cover (fate[0] && number == 2);
    cover (ends && takes && emits && is_end);
    cover (hold_valid_reg && emits && !store_ready);
end
