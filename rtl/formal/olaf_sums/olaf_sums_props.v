// What the pipeline of the sums promises: a sum begins with the newest one of its slot and beat, wherever that
// is: in the adder, in the register behind it, or in the memory. This file is read inside `olaf_sums`.

// An update has two beats at least: no beat is issued twice in a row.
always @* assume (!(issue && issued_1_reg && slot == slot_1_reg && beat == beat_1_reg));

// The prover picks a slot and a beat. All bytes are alike: one is watched. `newest` is the byte that was last made there.
(* anyconst *) reg [SLOT-1:0] watched_slot;
(* anyconst *) reg [BEAT-1:0] watched_beat;
localparam WATCHED_BYTE = 37;
wire at_1 = issued_1_reg && slot_1_reg == watched_slot && beat_1_reg == watched_beat;
wire made = write_3_reg && slot_3_reg == watched_slot && beat_3_reg == watched_beat;
wire [7:0] sum_byte = sum[8*WATCHED_BYTE +: 8];
wire [7:0] base_byte = base[8*WATCHED_BYTE +: 8];
wire [7:0] read_byte = read_data[8*WATCHED_BYTE +: 8];
reg [7:0] newest, newest_at_read;
reg known = 0, was_read = 0;
always @(posedge clk) begin
    if (made) {known, newest} <= {1'b1, sum_byte};
    was_read <= read && known && read_slot == watched_slot && read_beat == watched_beat;
    newest_at_read <= newest;
    if (rst) {known, was_read} <= 0;
end
always @* begin
    if (at_1 && add_1_reg && made) from_the_adder: assert (base_byte == sum_byte);
    if (at_1 && add_1_reg && !made && known) newest_sum: assert (base_byte == newest);
    // What was not added takes the place of what is there.
    if (at_1 && !add_1_reg) assert (base_byte == arrived[8*WATCHED_BYTE +: 8]);
    if (was_read) for_the_departure: assert (read_byte == newest_at_read);
end

// Where the newest byte is: in both memories, and in the register that a sum has left for them.
(* hierconn *) wire [SLOT+BEAT-1:0] \for_sums.g_lut.picked , \for_departures.g_lut.picked ;
(* hierconn *) wire [511:0] \for_sums.g_lut.picked_word , \for_departures.g_lut.picked_word ;
wire stored_now = write_4_reg && slot_4_reg == watched_slot && beat_4_reg == watched_beat;
always @* begin
    assume (\for_sums.g_lut.picked == {watched_slot, watched_beat});
    assume (\for_departures.g_lut.picked == {watched_slot, watched_beat});
    if (known) assert (\for_sums.g_lut.picked_word [8*WATCHED_BYTE +: 8] == newest);
    if (known) assert (\for_departures.g_lut.picked_word [8*WATCHED_BYTE +: 8] == newest);
    if (stored_now) assert (known && sum_4_reg[8*WATCHED_BYTE +: 8] == newest);
    if (at_1 && known && !stored_now) assert (stored[8*WATCHED_BYTE +: 8] == newest);
end

// A first beat that is on its way holds the departure up, until it is in the memory.
wire first_on_its_way = (issue && beat == 0 && slot == watched)
    || (issued_1_reg && beat_1_reg == 0 && slot_1_reg == watched)
    || (issued_2_reg && beat_2_reg == 0 && slot_2_reg == watched)
    || (issued_3_reg && beat_3_reg == 0 && slot_3_reg == watched);
always @* begin
    if (issued_1_reg) assert (first_1_reg == (beat_1_reg == 0));
    if (issued_2_reg) assert (first_2_reg == (beat_2_reg == 0));
    if (issued_3_reg) assert (first_3_reg == (beat_3_reg == 0));
end
always @* held_up: assert (unsettled == first_on_its_way);

// A trial leaves no trace.
always @* if (write_2_reg) assert (issued_2_reg);
always @* if (write_3_reg) assert (issued_3_reg);
reg past_trial_1 = 0, past_trial_2 = 0;
always @(posedge clk) {past_trial_2, past_trial_1} <= {past_trial_1, issued_1_reg && trial_1_reg};
always @* if (past_trial_1) assert (!write_2_reg);
always @* if (past_trial_2) no_trace: assert (!write_3_reg);

always @(posedge clk) if (!rst) begin
    cover (at_1 && add_1_reg && made && known);
    cover (at_1 && add_1_reg && !made && known && from_4);
    cover (at_1 && add_1_reg && !made && known && !from_4);
    cover (was_read && known && newest != newest_at_read);
end
