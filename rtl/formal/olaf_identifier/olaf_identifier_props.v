// What the identifier promises. This file is read inside `olaf_identifier`. The properties are proved by
// induction, for any frames and any pauses.
//
// The two first beats of a frame are kept as they came, and its bytes are counted. At its end the conditions of
// olaf-wire are asked of them, in the order of `Packet::new_checked`, `Update::parse` and `Answer::parse`.

reg [1023:0] head;
// Bytes so far, up to a number that no message has; the beats of a frame that count them are whole.
reg [17:0] size;
reg [11:0] beats_before = 0;
reg whole_beats, came = 0;
// How many bytes are kept; 0 if the kept ones are not the first ones.
function [6:0] kept(input [63:0] keep);
    integer i;
    begin
        kept = 0;
        for (i = 1; i <= 64; i = i + 1) if (keep == {64{1'b1}} >> (64 - i)) kept = i;
    end
endfunction
wire [6:0] beat_bytes = kept(tkeep);
// For the proof of `olaf_ingress`.
wire [11:0] watched_beats = beats_before;
wire [17:0] watched_size = size;
wire        watched_whole = whole_beats;

always @(posedge clk) begin
    came <= passes && tlast && !rst;
    if (passes) begin
        if (beats_before == 0) head[511:0] <= tdata;
        if (beats_before == 1) head[1023:512] <= tdata;
        size <= {beats_before, 6'd0} + beat_bytes;
        whole_beats <= (beats_before == 0 || whole_beats) && beat_bytes != 0 && (tlast || tkeep[63]);
        beats_before <= tlast ? 12'd0 : beats_before == 2000 ? beats_before : beats_before + 1'b1;
    end
    if (rst) beats_before <= 0;
end

function [31:0] u32(input [1023:0] from, input integer at);
    u32 = {from[8*at +: 8], from[8*(at+1) +: 8], from[8*(at+2) +: 8], from[8*(at+3) +: 8]};
endfunction

function [63:0] u64(input [1023:0] from, input integer at);
    u64 = {u32(from, at), u32(from, at + 4)};
endfunction

wire common = u32(head, 0) == "OLAF" && head[8*4 +: 8] == 3 && head[8*6 +: 16] == 0;
wire spec_update = common && head[8*5 +: 8] == 1 && whole_beats && size >= 96
    && u32(head, 68) <= 16348 && size == 96 + 4*u32(head, 68)
    && u32(head, 32) < u32(head, 36) && u64(head, 40) <= u64(head, 48) && u32(head, 56) <= u32(head, 60) && u32(head, 64) != 0
    && u64(head, 72) > 0 && u64(head, 72) < 64'h7ff0_0000_0000_0000 && u32(head, 68) != 0;
wire spec_answer = common && whole_beats && size >= 112
    && u32(head, 44) <= 16348 && size == 112 + 4*u32(head, 44)
    && ((head[8*5 +: 8] == 2 && u32(head, 44) == 0) || (head[8*5 +: 8] == 3 && u32(head, 44) != 0))
    && u32(head, 28) < u32(head, 32) && (u64(head, 96) & u64(head, 104)) == 0 && u32(head, 44) <= u32(head, 40);

always @* begin
    when_it_ends: assert (ended == came);
    if (!ended) silent: assert (!update && !answer);
    one_verdict: assert (!(update && answer));
    if (ended) begin
        an_update: assert (update == spec_update);
        an_answer: assert (answer == spec_answer);
    end
    if (update || answer) begin
        address: assert (job == u32(head, 8) && cluster == u32(head, 12) && worker == u32(head, 16) && session == u32(head, 20));
        numbered: assert (number == u32(head, 24));
    end
    if (update) begin
        fields: assert (segment == u32(head, 32) && lanes == u32(head, 68) && contributors == u32(head, 64));
        floats: assert (weight == u64(head, 72) && reward == u64(head, 80));
    end
    if (answer) fields_of_answer: assert (segment == u32(head, 28) && lanes == u32(head, 44));
end

// What makes it inductive: the registers follow from the two beats.
reg past = 0;
reg [11:0] length;
always @(posedge clk) begin
    past <= 1;
    if (passes) length <= beats_before + 1'b1;
end
wire between = beats_before != 0;
wire update_head = common && head[8*5 +: 8] == 1 && u32(head, 32) < u32(head, 36) && u64(head, 40) <= u64(head, 48)
    && u32(head, 56) <= u32(head, 60);
wire answer_head = common && u32(head, 28) < u32(head, 32) && u32(head, 44) <= 16348 && u32(head, 44) <= u32(head, 40)
    && ((head[8*5 +: 8] == 2 && u32(head, 44) == 0) || (head[8*5 +: 8] == 3 && u32(head, 44) != 0));
wire update_both = update_head && u32(head, 64) != 0 && u64(head, 72) > 0 && u64(head, 72) < 64'h7ff0_0000_0000_0000
    && u32(head, 68) <= 16348 && u32(head, 68) != 0;
wire answer_both = answer_head && (u64(head, 96) & u64(head, 104)) == 0;
// Beats of the frame that is known of now, its end included.
wire [11:0] known = between ? beats_before : length;
always @* begin
    if (past && (between || ended)) begin
        assert (known != 0);
        if (ended) assert (last_beat_reg == (known > 1025 ? 1024 : known - 1));
        if (between) assert (beat_reg == (beats_before > 1024 ? 1024 : beats_before) && whole_beats == !gap_reg);
        if (known == 1) begin
            assert (update_reg == (update_head && between) && answer_reg == (answer_head && between));
        end else begin
            assert (update_reg == update_both && answer_reg == answer_both);
            if (update_reg) assert (words_reg == 23 + u32(head, 68) && lanes_reg == u32(head, 68)
                && contributors == u32(head, 64) && weight == u64(head, 72) && reward == u64(head, 80) && segment == u32(head, 32));
        end
        if (answer_reg) assert (words_reg == 27 + u32(head, 44) && lanes_reg == u32(head, 44) && segment == u32(head, 28));
        if (known == 1 && update_reg) assert (segment == u32(head, 32));
        assert (job == u32(head, 8) && cluster == u32(head, 12) && worker == u32(head, 16) && session == u32(head, 20));
        assert (number == u32(head, 24));
    end
    assert (beats_before <= 2000);
    if (!between) assert (beat_reg == 0);
    if (ended) assert (whole_beats == (!gap_reg && kept(last_keep_reg) != 0));
    if (ended && length > 0) assert (size == {length - 1'b1, 6'd0} + kept(last_keep_reg));
end

always @(posedge clk) if (past && !rst) begin
    an_update_ends: cover (update && passes && between == 0);
    an_acknowledgement: cover (answer && lanes == 0);
    a_model: cover (answer && lanes == 20 && length == 3);
    long_update: cover (update && length == 4);
    neither: cover (ended && !update && update_both);
end
