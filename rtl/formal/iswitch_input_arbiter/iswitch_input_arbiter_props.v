// What the arbiter promises, for any frames and any pauses. This file is read inside `iswitch_input_arbiter`, with both choices.

// A queue that offers a beat keeps it until it is taken.
localparam BEAT = LANES*36 + 1 + USER;
reg past = 0, past_rst, past_regular, past_tagged;
reg [QUEUES-1:0] past_waits;
reg [QUEUES*LANES*32-1:0] past_data;
reg [QUEUES*LANES*4-1:0] past_keep;
reg [QUEUES-1:0] past_last;
reg [QUEUES*USER-1:0] past_user;
wire [BEAT-1:0] regular = {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser};
wire [BEAT+QUEUE+1:0] tagged = {m_tagged_tdata, m_tagged_tkeep, m_tagged_tlast, m_tagged_tuser};
reg [BEAT-1:0] past_of_regular;
reg [BEAT+QUEUE+1:0] past_of_tagged;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= s_axis_tvalid & ~s_axis_tready;
    {past_data, past_keep, past_last, past_user} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast, s_axis_tuser};
    past_regular <= m_axis_tvalid && !m_axis_tready;
    past_tagged <= m_tagged_tvalid && !m_tagged_tready;
    {past_of_regular, past_of_tagged} <= {regular, tagged};
end
integer q;
always @* begin
    assume (past || rst);
    if (past && !past_rst) for (q = 0; q < QUEUES; q = q + 1) if (past_waits[q]) begin
        assume (s_axis_tvalid[q] && s_axis_tlast[q] == past_last[q]);
        assume (s_axis_tdata[LANES*32*q +: LANES*32] == past_data[LANES*32*q +: LANES*32]);
        assume (s_axis_tkeep[LANES*4*q +: LANES*4] == past_keep[LANES*4*q +: LANES*4]);
        assume (s_axis_tuser[USER*q +: USER] == past_user[USER*q +: USER]);
    end
end

// An offered beat stays, unchanged, until it is taken.
always @* if (past && !past_rst) begin
    if (past_regular) stays: assert (m_axis_tvalid && regular == past_of_regular);
    if (past_tagged) tagged_stays: assert (m_tagged_tvalid && tagged == past_of_tagged);
end

// The prover picks a queue. What the first beat of its frame says is the way of the whole frame, and its class and mark.
(* anyconst *) reg [QUEUE-1:0] picked;
always @* assume (picked < QUEUES);
wire [LANES*32-1:0] data = s_axis_tdata >> LANES*32*picked;
wire [LANES*4-1:0]  keep = s_axis_tkeep >> LANES*4*picked;
wire [USER-1:0]     user = s_axis_tuser >> USER*picked;
wire last = s_axis_tlast[picked];
wire takes = s_axis_tvalid[picked] && s_axis_tready[picked];
// Ethernet with IPv4 of 20 bytes that holds UDP and is no fragment; the class of iSwitch's packets. Bytes as in the frame.
function [7:0] byte_at(input [LANES*32-1:0] bytes, input integer at);
    byte_at = bytes >> 8*at;
endfunction
wire tagged_frame = picked != PORTS && keep[23] && byte_at(data, 12) == 8 && byte_at(data, 13) == 0
    && byte_at(data, 14) == 8'h45 && (byte_at(data, 20) & 8'h3f) == 0 && byte_at(data, 21) == 0
    && byte_at(data, 23) == 17 && (byte_at(data, 15) >> 2 == 6'h23 || byte_at(data, 15) >> 2 == 6'h2b);
reg inside = 0, way_kept, control_kept, marked_kept;
wire way = inside ? way_kept : tagged_frame;
wire is_control = inside ? control_kept : byte_at(data, 15) >> 2 == 6'h2b;
wire is_marked = inside ? marked_kept : (byte_at(data, 15) & 3) == 3;
always @(posedge clk) begin
    if (takes) {inside, way_kept, control_kept, marked_kept} <= {!last, way, is_control, is_marked};
    if (rst) inside <= 0;
end

// A beat that is taken leaves as the next one, on the way of its frame and on no other. One that is not taken does not.
reg past_takes, past_way;
reg [BEAT-1:0] past_beat;
reg [1:0] past_class;
reg [QUEUES-1:0] past_ready;
reg past_regular_moves, past_tagged_moves;
wire [QUEUES-1:0] others = s_axis_tready & ~(1 << picked);
always @(posedge clk) begin
    past_takes <= takes && !rst;
    past_way <= way;
    past_beat <= {data, keep, last, user};
    past_class <= {is_marked, is_control};
    past_ready <= rst ? 0 : s_axis_tready;
    past_regular_moves <= m_axis_tvalid && m_axis_tready;
    past_tagged_moves <= m_tagged_tvalid && m_tagged_tready;
end
wire [2:0] taken = past_ready[0] + past_ready[1] + past_ready[2];
always @* if (past && !past_rst) begin
    if (past_takes && !past_way) regular_leaves: assert (m_axis_tvalid && regular == past_beat);
    if (past_takes && past_way) tagged_leaves: assert (m_tagged_tvalid && m_tagged_tuser[QUEUE-1:0] == picked
        && {m_tagged_tdata, m_tagged_tkeep, m_tagged_tlast, m_tagged_tuser[QUEUE+2 +: USER]} == past_beat
        && m_tagged_tuser[QUEUE+1:QUEUE] == past_class);
    // Beats that are new at the outputs are as many as were taken: none is doubled.
    none_lost: assert (taken == (m_axis_tvalid && !past_regular) + (m_tagged_tvalid && !past_tagged));
end
always @* if (past) begin
    only_offered: assert ((s_axis_tready & ~s_axis_tvalid) == 0);
    one_way: assert ((regular_ready & tagged_ready) == 0);
    results_pass: assert (!to_accelerator[PORTS]);
    assert (inside_reg[picked] == inside);
    if (inside) assert (tagged_reg[picked] == way_kept && control_reg[picked] == control_kept
                        && marked_reg[picked] == marked_kept);
end
(* hierconn *) wire \regular_choice.inside_reg , \tagged_choice.inside_reg ;
(* hierconn *) wire [QUEUE-1:0] \regular_choice.serving_reg , \tagged_choice.serving_reg ;
wire regular_inside = \regular_choice.inside_reg , tagged_inside = \tagged_choice.inside_reg ;
wire [QUEUE-1:0] regular_serving = \regular_choice.serving_reg , tagged_serving = \tagged_choice.serving_reg ;
always @* if (past) begin
    assert (regular_serving < QUEUES && tagged_serving < QUEUES);
    // The way that serves the picked queue is that of its frame, and the frame is not at its end.
    if (regular_inside && regular_serving == picked) assert (inside && !way_kept);
    if (tagged_inside && tagged_serving == picked) assert (inside && way_kept);
    if (inside && !way_kept) assert (regular_inside && regular_serving == picked);
    if (inside && way_kept) assert (tagged_inside && tagged_serving == picked);
end

always @* if (past && !rst) begin
    both: cover (m_axis_tvalid && m_axis_tready && m_tagged_tvalid && m_tagged_tready && taken == 2);
    result: cover (past_takes && picked == PORTS && !past_way && past_class[0] && m_axis_tlast && past_regular_moves);
    second_beat: cover (past_takes && past_way && inside && past_class == 2'b11 && m_tagged_tuser[QUEUE-1:0] == 1);
end
