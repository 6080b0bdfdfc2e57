// What the entrance of the queue promises. This file is read inside `olaf_ingress`, and the promises of
// `olaf_identifier` are proved with it.

// The beats that came, a cycle later: `came_*`. What is known of the frame before this beat is in `number`, its
// beats so far, and `gap`: a beat in the middle was not full.
reg         came = 0, came_last;
reg [511:0] came_data;
reg [63:0]  came_keep;
always @(posedge clk) begin
    came <= s_axis_tvalid && s_axis_tready && !rst;
    {came_data, came_keep, came_last} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast};
end

// How many bytes are kept; 0 if the kept ones are not the first ones.
function [6:0] kept(input [63:0] keep);
    integer k;
    begin
        kept = 0;
        for (k = 1; k <= 64; k = k + 1) if (keep == {64{1'b1}} >> (64 - k)) kept = k;
    end
endfunction

// A lane is a word from byte 96 on; it is a number, and below 2^113, or not. The prover picks one of the sixteen
// words of a beat, and which of the two is asked.
reg [11:0] number = 0;
reg        gap, begins_as_update, begins_as_answer, lane_breaks, lane_is_large;
wire [6:0]  came_bytes = kept(came_keep);
wire        came_gap = came_bytes == 0 || (!came_last && came_bytes != 64);
wire        came_update = number == 0
    ? came_data[47:0] == {8'd1, 8'd3, "FALO"} && came_keep[5] : begins_as_update;
wire        came_answer = number == 0
    ? (came_data[47:0] == {8'd2, 8'd3, "FALO"} || came_data[47:0] == {8'd3, 8'd3, "FALO"}) && came_keep[5]
    : begins_as_answer;
reg         beat_breaks, beat_is_large;
integer     word;
always @* begin
    {beat_breaks, beat_is_large} = 0;
    for (word = 0; word < 16; word = word + 1)
        if ({number, 6'd0} + 4*word >= 96 && came_keep[4*word]) begin
            beat_breaks = beat_breaks || came_data[32*word + 23 +: 8] == 255;
            beat_is_large = beat_is_large || came_data[32*word + 23 +: 8] >= 127 + 113;
        end
end

// The same with the beat: a cycle later still, where it leaves.
reg         out = 0, out_last, out_update, out_answer, out_gap, out_breaks, out_large;
reg [511:0] out_data;
reg [63:0]  out_keep;
reg [11:0]  out_number;
reg [18:0]  out_bytes;
always @(posedge clk) begin
    out <= came && !rst;
    {out_data, out_keep, out_last} <= {came_data, came_keep, came_last};
    {out_update, out_answer, out_number} <= {came_update, came_answer, number};
    if (came) begin
        out_bytes <= {number, 6'd0} + came_bytes;
        {gap, out_gap} <= {2{(number != 0 && gap) || came_gap}};
        {begins_as_update, begins_as_answer} <= {came_update, came_answer};
        {lane_breaks, out_breaks} <= {2{(number != 0 && lane_breaks) || beat_breaks}};
        {lane_is_large, out_large} <= {2{(number != 0 && lane_is_large) || beat_is_large}};
        number <= came_last ? 0 : number == 2000 ? number : number + 1'b1;
    end
    if (rst) number <= 0;
end

// Each beat that came leaves once, unchanged, in its order, on the way of its frame. Beats beyond the longest frame
// do not, but for the last one.
wire leaves = out && (out_number < BEATS || out_last);
always @* begin
    on_its_way: assert (update == (leaves && out_update) && other == (leaves && !out_update));
    if (out) unchanged: assert ({data, keep, last} == {out_data, out_keep, out_last});
end

// The verdict comes with the last beat, and there is one. What begins as an update, or as an answer, and is none
// is refused, and nothing else is.
(* hierconn *) wire \identifier.ended , \identifier.update , \identifier.answer ;
wire spec_long = out_bytes > FRAME;
always @* begin
    if (out && last) begin
        is_framing: assert (framing == out_gap);
        is_too_long: assert (too_long == (!out_gap && spec_long));
        is_refused: assert (refused == (!out_gap && !spec_long
            && ((out_update && !\identifier.update ) || (out_answer && !\identifier.answer ))));
        one_verdict: assert ({1'b0, framing} + too_long + refused + good == 1);
    end else no_verdict: assert (!framing && !too_long && !refused);
end

// What `olaf_store`, `olaf_arrivals` and `olaf_sums` rely on: a good update has the lanes that its header says, so
// two beats or more, and no more than fit; a lane that spoils a sum is known.
always @* if (update && last && good) begin
`ifndef WITHOUT_SIZE
    its_size: assert (lanes != 0 && out_bytes == 96 + 4*lanes && out_bytes <= FRAME);
    its_beats: assert (out_number >= 1 && out_number < BEATS);
`endif
    assert (not_finite == out_breaks && vast == out_large);
end

// What `olaf_store` relies on: a beat that leaves was taken in two cycles before, when there was room.
reg room_1 = 0, room_2 = 0;
always @(posedge clk) {room_2, room_1} <= rst ? 2'd0 : {room_1, room};
always @* begin
    taken_in: assert (!(update || other) || room_2);
    assert (s_axis_tready == room);
end

// What makes it inductive: the registers are those of this file, and the identifier is at the same beat.
(* hierconn *) wire [11:0] \identifier.watched_beats ;
(* hierconn *) wire [17:0] \identifier.watched_size ;
(* hierconn *) wire        \identifier.watched_whole  ;
reg past = 0;
always @(posedge clk) past <= 1;
always @* begin
    assert (valid_1_reg == came && (!came || {data_1_reg, keep_1_reg, last_1_reg} == {came_data, came_keep, came_last}));
    assert (valid_2_reg == out);
    assert (\identifier.ended == (out && out_last));
    assert (number <= 2000 && beat_reg == (number > BEATS ? BEATS : number));
    assert (\identifier.watched_beats == number);
    if (number != 0) begin
        assert (update_reg == begins_as_update && answer_reg == begins_as_answer && framing_reg == gap);
        assert (not_finite_reg == lane_breaks && large_reg == lane_is_large);
        assert (\identifier.watched_whole == !gap);
        assert (long_reg == (number >= BEATS) || gap);
    end
    if (out) begin
        assert ({data_2_reg, keep_2_reg, last_2_reg} == {out_data, out_keep, out_last});
        assert ({update_2_reg, answer_2_reg} == {out_update, out_answer});
        assert (beyond_2_reg == (out_number >= BEATS));
        assert (framing_reg == out_gap && not_finite_reg == out_breaks && large_reg == out_large);
        if (!out_gap) assert (long_reg == spec_long);
        if (!out_gap) assert (\identifier.watched_size == out_bytes);
        assert (number == (out_last ? 0 : out_number == 2000 ? 2000 : out_number + 1));
        if (!out_last) assert ({gap, lane_breaks, lane_is_large} == {out_gap, out_breaks, out_large});
        if (!out_last) assert ({begins_as_update, begins_as_answer} == {out_update, out_answer});
    end
end

always @(posedge clk) if (past && !rst) begin
    good_update: cover (update && last && good && out_number == BEATS - 1);
    back_to_back: cover (update && last && good && came && came_update && number == 0);
    cover (framing && out_number == 1);
    cover (too_long && out_number > BEATS + 1);
    cover (refused && update);
    refused_answer: cover (refused && other && out_number == 1);
    good_answer: cover (other && last && good && out_answer);
    cover (other && last && good && lanes == 0 && !out_update && out_number == 0);
    cover (update && last && good && not_finite);
    cover (update && last && good && vast && !not_finite);
    cover (out && !room_1);
end
