// The whole queue: what becomes of a frame from its entrance to its exit, and how long that takes. The modules are
// the real ones, but for the data and the arithmetic (see the files beside this one): `olaf_ingress`, `olaf_store`,
// `olaf_arrivals`, `olaf_queue_control`, `olaf_departures`, `olaf_status`, `frame_fifo` and `olaf_queue` itself.

`default_nettype none

module olaf_queue_whole (
    input wire clk
);

localparam SLOTS = 2;
localparam SLOT = 1;
localparam ADDRESS = 5;

// Frames of any kind and any length. A first beat is that of an update, of an answer or of something else; lanes
// are 0 or no numbers.
(* anyseq *) reg       rst, valid, last, ready, is_update, is_answer, spoils;
(* anyseq *) reg [1:0] keeps;
reg inside = 0;
wire s_ready, m_valid, m_last;
wire takes = valid && s_ready;
wire [511:0] data = inside ? {16{spoils ? 32'hffff_ffff : 32'd0}}
    : is_update ? {464'd0, 8'd1, 8'd3, "FALO"} : is_answer ? {464'd0, 8'd2, 8'd3, "FALO"} : 512'd0;
// All bytes, the first eight, a hole, none.
wire [63:0] keep = keeps == 0 ? {64{1'b1}} : keeps == 1 ? 64'hff : keeps == 2 ? 64'hf0f : 64'd0;
wire [5:0] fate;
wire begun, ended;
always @(posedge clk) if (rst) inside <= 0; else if (takes) inside <= !last;
// An offered beat stays.
reg started = 0, past_waits = 0;
reg [5:0] past_offer;
wire [5:0] offer = {last, is_update, is_answer, spoils, keeps};
always @(posedge clk) begin
    started <= 1;
    past_waits <= valid && !s_ready && !rst;
    past_offer <= offer;
end
always @* begin
    if (!started) assume (rst);
    if (past_waits && !rst) assume (valid && offer == past_offer);
end

olaf_queue #(.SLOTS(SLOTS), .FRAME(128), .GATE(0)) queue (
    .clk(clk), .rst(rst), .session(32'd0), .gate(1'b0), .gate_threshold(64'd0),
    .active_clusters(16'd0), .round_us(32'd0),
    .s_axis_tdata(data), .s_axis_tkeep(keep), .s_axis_tvalid(valid), .s_axis_tready(s_ready), .s_axis_tlast(last),
    .m_axis_tdata(), .m_axis_tkeep(), .m_axis_tvalid(m_valid), .m_axis_tready(ready), .m_axis_tlast(m_last),
    .fate(fate), .begun(begun), .ended(ended),
    .s_axil_awaddr(12'd0), .s_axil_awvalid(1'b0), .s_axil_awready(),
    .s_axil_wdata(32'd0), .s_axil_wstrb(4'd0), .s_axil_wvalid(1'b0), .s_axil_wready(),
    .s_axil_bresp(), .s_axil_bvalid(), .s_axil_bready(1'b1),
    .s_axil_araddr(12'd0), .s_axil_arvalid(1'b0), .s_axil_arready(),
    .s_axil_rdata(), .s_axil_rresp(), .s_axil_rvalid(), .s_axil_rready(1'b1)
);

// What is seen inside.
(* hierconn *) wire \queue.update , \queue.other , \queue.in_last , \queue.in_good , \queue.take , \queue.valid ;
(* hierconn *) wire \queue.framing , \queue.too_long , \queue.refused , \queue.passed , \queue.no_room ;
(* hierconn *) wire \queue.counters.stamped ;
(* hierconn *) wire \queue.other_valid , \queue.other_ready , \queue.other_last , \queue.room ;
(* hierconn *) wire \queue.ingress.valid_1_reg , \queue.ingress.last_1_reg ;
(* hierconn *) wire \queue.ingress.valid_2_reg , \queue.ingress.last_2_reg ;
(* hierconn *) wire [4:0] \queue.store.headers ;
(* hierconn *) wire [SLOT:0] \queue.used ;
(* hierconn *) wire \queue.departing ;
(* hierconn *) wire \queue.departures.valid_2_reg , \queue.departures.last_2_reg ;
(* hierconn *) wire \queue.departures.valid_3_reg , \queue.departures.last_3_reg ;
(* hierconn *) wire \queue.status.valid_1_reg , \queue.status.last_1_reg ;
(* hierconn *) wire \queue.status.valid_2_reg , \queue.status.last_2_reg ;
(* hierconn *) wire \queue.status.valid_3_reg , \queue.status.last_3_reg ;
(* hierconn *) wire \queue.status.user_1_reg , \queue.status.user_2_reg , \queue.status.user_3_reg ;
(* hierconn *) wire [ADDRESS:0] \queue.others.frame_reg , \queue.others.read_reg , \queue.others.write_reg ;
(* hierconn *) wire \queue.arrivals.issue_reg , \queue.arrivals.beat_reg , \queue.arrivals.last_reg ;
(* hierconn *) wire \queue.arrivals.doubts ;
(* hierconn *) wire [1:0] \queue.arrivals.state_reg ;
(* hierconn *) wire \queue.departures.others_reg , \queue.departures.inside_reg , \queue.departures.beat_reg ;
(* hierconn *) wire \queue.departures.last ;
(* hierconn *) wire [SLOT-1:0] \queue.departing_slot ;
(* hierconn *) wire \queue.adding.first ;
(* hierconn *) wire [2:0] \queue.adding.first_reg , \queue.adding.slots_reg ;
(* hierconn *) wire [SLOT-1:0] \queue.issue_slot ;
(* hierconn *) wire [1:0] \queue.mean.looked ;

// The source of the beat at the output.
reg entry_3 = 0;
always @(posedge clk) if (!m_valid || ready) entry_3 <= \queue.departures.valid_2_reg ;
wire leaves = m_valid && ready;

// Frames, each counted where it is: modulo 64. Fewer are inside at a time.
localparam N = 6;
reg [N-1:0] came = 0, judged = 0, updates = 0, decided = 0, appended = 0, freed = 0, left = 0;
reg [N-1:0] others = 0, settled = 0;
wire in_ends = (\queue.update || \queue.other ) && \queue.in_last ;
always @(posedge clk) begin
    came <= came + (takes && last);
    judged <= judged + in_ends;
    updates <= updates + (\queue.update && in_ends && \queue.in_good );
    others <= others + (\queue.other && in_ends && \queue.in_good );
    settled <= settled + \queue.passed + \queue.no_room ;
    decided <= decided + \queue.take ;
    appended <= appended + fate[0];
    freed <= freed + ended;
    left <= left + (leaves && m_last && entry_3);
    if (rst) {came, judged, updates, others, settled, decided, appended, freed, left} <= 0;
end

`ifdef ONLY_ONE_UPDATE
// One update, and a sink that is ready: so few cases that the proof gets to where its entry has left.
always @* begin
    if (started) assume (!rst);
    assume (ready && is_update && keeps == 0 && !spoils && (!valid || came == 0));
end
`endif

// Where a frame is. Each line is a stretch of the way: what entered it has left it or is in it, and what leaves it
// has exactly one fate. The lines make a chain from the entrance to the exit. An update that was merged, or
// replaced another one, is in the entry that it met; an entry leaves as one frame.
wire [N-1:0] waiting = {1'b0, \queue.store.headers } + \queue.valid ;
wire [N-1:0] in_ingress = (\queue.ingress.valid_1_reg && \queue.ingress.last_1_reg )
    + (\queue.ingress.valid_2_reg && \queue.ingress.last_2_reg );
wire [N-1:0] at_exit = (\queue.departures.valid_2_reg && \queue.departures.last_2_reg )
    + (\queue.departures.valid_3_reg && \queue.departures.last_3_reg && entry_3);
wire [N-1:0] in_status = (\queue.status.valid_1_reg && \queue.status.last_1_reg )
    + (\queue.status.valid_2_reg && \queue.status.last_2_reg ) + (\queue.status.valid_3_reg && \queue.status.last_3_reg );
// What is no update and is not malformed; the FIFO says a cycle later whether it had room.
wire [N-1:0] passing = (\queue.status.valid_1_reg && \queue.status.last_1_reg && !\queue.status.user_1_reg )
    + (\queue.status.valid_2_reg && \queue.status.last_2_reg && !\queue.status.user_2_reg )
    + (\queue.status.valid_3_reg && \queue.status.last_3_reg && !\queue.status.user_3_reg )
    + \queue.passed + \queue.no_room ;
reg was_stamped = 0;
always @(posedge clk) was_stamped <= \queue.counters.stamped && !rst;
wire whole_update = in_ends && \queue.update && \queue.in_good ;
wire whole_other = in_ends && \queue.other && \queue.in_good ;
`ifndef DRAIN
always @* if (started) begin
    entrance: assert (came == judged + in_ingress);
    one_verdict: assert ({2'd0, \queue.framing } + \queue.too_long + \queue.refused + whole_update + whole_other == in_ends);
    store: assert (updates == decided + waiting);
    one_fate: assert ({2'd0, fate[0]} + fate[1] + fate[2] + fate[3] + fate[4] + fate[5] == \queue.take );
    slots: assert (appended == freed + \queue.used );
    exit: assert (freed == left + at_exit);
    other_frames: assert (others == settled + passing);
    if (was_stamped) not_refused: assert (\queue.passed || \queue.no_room );
end
`endif
// What makes it inductive; the proof of the drain takes it for granted.
`ifdef DRAIN
`define PROVED_BEFORE assume
`else
`define PROVED_BEFORE assert
`endif
wire [ADDRESS:0] whole_beats = \queue.others.frame_reg - \queue.others.read_reg ;
wire [ADDRESS:0] all_beats = \queue.others.write_reg - \queue.others.read_reg ;
always @* if (started) begin
    `PROVED_BEFORE (\queue.used <= SLOTS);
    if (\queue.departing ) `PROVED_BEFORE (\queue.used != 0);
    `PROVED_BEFORE (\queue.store.headers <= 28);
    `PROVED_BEFORE (whole_beats <= all_beats && all_beats <= 1 << ADDRESS);
end

`ifdef DRAIN
// A bounded drain. After six cycles without input, no frame is on its way to the store or to the FIFO, and as long as
// the sink is ready, `rank` falls in each cycle until it is zero: then no update and no frame is inside. A frame
// that has no last beat yet does not count. No update is added for trial here (`doubts`); `olaf_arrivals` has
// the bound for one.
always @* begin
    assume (!\queue.arrivals.doubts );
    // `frame_fifo`: a whole frame leaves without a pause.
    if (started && \queue.departures.inside_reg ) assume (\queue.other_valid );
    // `olaf_departures`: beats are read in order, and the last one ends the departure. An entry has two at most here.
    if (started && \queue.departures.beat_reg ) assume (\queue.departures.last );
end

// Cycles until the first beat of the entry that departs is in the memory; then at most three for its mean.
wire [2:0] settle = \queue.adding.first && \queue.issue_slot == \queue.departing_slot ? 4
    : \queue.adding.first_reg [0] && \queue.adding.slots_reg [0] == \queue.departing_slot ? 3
    : \queue.adding.first_reg [1] && \queue.adding.slots_reg [1] == \queue.departing_slot ? 2
    : \queue.adding.first_reg [2] && \queue.adding.slots_reg [2] == \queue.departing_slot ? 1 : 0;
wire [2:0] patience = settle != 0 ? settle + 3'd3 : 3'd3 - \queue.mean.looked ;
wire [1:0] unissued = !\queue.arrivals.issue_reg ? 0 : \queue.arrivals.last_reg - \queue.arrivals.beat_reg + 2'd1;
wire header_comes = !\queue.valid && \queue.store.headers != 0;
// An update costs what its entry will, and its beats; an entry its wait and two beats; a beat its steps.
localparam R = 11;
localparam [R-1:0] MOST = 41*29 + 8*3 + 17*SLOTS + 5*(1 << ADDRESS) + 3 + 3;
wire [R-1:0] rank = 41*waiting + 8*(unissued + header_comes) + 17*(\queue.used - \queue.departing )
    + (!\queue.departing ? 0 : \queue.departures.beat_reg ? 4 : 8 + patience)
    + 5*whole_beats + (!\queue.other_valid ? 0 : \queue.departures.others_reg ? 2 : 3)
    + 2*\queue.departures.valid_2_reg + m_valid;

localparam [R:0] BOUND = 6 + MOST;
reg [R:0] quiet = 0;
reg [R-1:0] past_rank;
always @(posedge clk) begin
    quiet <= rst || valid || !ready ? 0 : quiet == BOUND ? quiet : quiet + 1'b1;
    past_rank <= rank;
end
wire empty = in_ingress == 0 && waiting == 0 && \queue.used == 0 && at_exit == 0 && in_status == 0 && !m_valid
    && !\queue.other_valid && \queue.others.frame_reg == \queue.others.read_reg ;
always @* if (started) begin
    assert (rank <= MOST);
    if (quiet > 6) falls: assert (rank == 0 || rank < past_rank);
    assert (quiet <= BOUND);
    if (quiet >= 6) assert (rank == 0 || quiet + rank <= BOUND);
    if (quiet == BOUND) empty_in_time: assert (empty);
    // What makes it inductive: nothing is on its way in, and the parts agree.
    if (quiet >= 1) assert (!\queue.ingress.valid_1_reg );
    if (quiet >= 2) assert (!\queue.ingress.valid_2_reg );
    if (quiet >= 3) assert (!\queue.status.valid_1_reg );
    if (quiet >= 4) assert (!\queue.status.valid_2_reg );
    if (quiet >= 5) assert (!\queue.status.valid_3_reg );
    assert (\queue.arrivals.state_reg == 0);
    if (\queue.arrivals.issue_reg ) assert (\queue.arrivals.beat_reg <= \queue.arrivals.last_reg );
    assert (\queue.mean.looked <= 2);
    if (\queue.departures.others_reg ) assert (!\queue.departing );
    if (\queue.departures.inside_reg ) assert (\queue.departures.others_reg );
    if (!\queue.departing ) assert (!\queue.departures.beat_reg );
end
`endif

reg was_merged = 0;
always @(posedge clk) was_merged <= !rst && (was_merged || fate[1]);

// An offered beat stays until it is taken.
reg past_m = 0, past_m_last;
always @(posedge clk) {past_m, past_m_last} <= {m_valid && !ready && !rst, m_last};
always @* if (started && past_m) stays: assert (m_valid && m_last == past_m_last);

always @(posedge clk) if (started && !rst) begin
    an_update_passes: cover (left == 1 && came == 1);
    a_sum_leaves: cover (left == 1 && appended == 1 && decided == 2 && was_merged);
    dropped_for_want_of_a_slot: cover (fate[4] && waiting != 0);
    another_frame_leaves: cover (left != 0 && leaves && m_last && !entry_3);
    malformed: cover (\queue.framing && \queue.used == 2);
    a_refused_answer: cover (\queue.refused && \queue.other );
    an_answer_passes: cover (was_stamped && \queue.passed );
`ifdef DRAIN
    long_wait: cover (quiet == 12 && rank != 0);
    emptied: cover (quiet == 8 && empty && left == 2 && was_merged);
`endif
end

endmodule
