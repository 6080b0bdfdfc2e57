// What the data path promises. This file is read inside `iswitch_sum`, with `fp32_lanes` of this folder. Proved by
// induction, for 4 lanes, 2 beats and 2 cells.

// A job is one that `iswitch_control` gives: what it stores or sends is not longer than a packet.
reg begun = 0;
always @(posedge clk) begun <= 1;
always @* begin
    assume (begun || rst);
    if (job_valid) assume (job_length != 0 && job_length <= BEATS*BYTES && job_in <= BEATS);
end

// The output never gets more than it has room for. `waiting` counts the beats in it.
reg [CREDIT:0] waiting = 0;
wire [CREDIT:0] flying = {{CREDIT{1'b0}}, sends_1} + sends_2 + sends_3;
wire [CREDIT:0] to_come = busy_reg && step_reg < out_reg ? out_reg - step_reg : 0;
always @(posedge clk) waiting <= rst ? 0 : waiting + out_valid - out_left;
always @* begin
    if (out_left) assume (waiting != 0);
    if (begun) begin
        room: assert (credit_reg + waiting + flying + to_come == ROOM);
        no_overflow: assert (waiting + out_valid <= ROOM);
    end
end

// Where each beat belongs.
reg [CELL-1:0] cell_0, cell_1, cell_2, cell_3;
reg [BEAT-1:0] beat_1, beat_2, beat_3;
reg valid_1 = 0, valid_2 = 0;
always @(posedge clk) begin
    if (starts) cell_0 <= job_cell;
    {cell_1, cell_2, cell_3} <= {cell_0, cell_1, cell_2};
    {beat_1, beat_2, beat_3} <= {step_reg, beat_1, beat_2};
    valid_1 <= busy_reg && !rst;
    valid_2 <= valid_1 && !rst;
end
always @* if (begun) begin
    if (busy_reg) begin
        assert (step_reg < steps_reg && steps_reg >= 2 && in_reg <= BEATS && out_reg <= BEATS);
        assert (steps_reg == 2 || steps_reg == in_reg || steps_reg == out_reg);
        assert (in_reg <= steps_reg && out_reg <= steps_reg);
        assert (address_reg == cell_0 * BEATS + step_reg);
        if (step_reg != 0) assert (valid_1 && beat_1 == step_reg - 1'b1 && cell_1 == cell_0);
    end
    if (stores_1 || sends_1) assert (valid_1);
    if (stores_2 || sends_2) assert (valid_2);
    if (valid_1) assert (beat_1 < BEATS && address_1 == cell_1 * BEATS + beat_1);
    if (valid_2) assert (beat_2 < BEATS && address_2 == cell_2 * BEATS + beat_2);
    if (valid_1 && step_reg == 0 && busy_reg) assert (beat_1 != 0);
    if (valid_1 && !busy_reg) assert (beat_1 != 0);
    if (valid_2 && valid_1 && beat_1 != 0) assert (cell_1 == cell_2 && beat_2 == beat_1 - 1'b1);
    if (valid_2 && valid_1 && beat_1 == 0) assert (beat_2 != 0);
    if (valid_2 && !valid_1) assert (beat_2 != 0);
end

// A beat is added to the newest sum of its place, wherever that is: in the adders, behind them, or in the memory.
(* anyconst *) reg [ADDRESS-1:0] place;
reg [LANES*32-1:0] newest;
reg known = 0;
genvar lane;
wire [LANES*32-1:0] next;
wire [LANES*32-1:0] operand = from_cell_1 ? stored : beat;
generate
    for (lane = 0; lane < LANES; lane = lane + 1) begin : g_next
        assign next[32*lane +: 32] = operand[32*lane +: 32]
            ^ (adds[lane] ? {stored[32*lane +: 31], stored[32*lane+31]} : 32'd0);
    end
endgenerate
// What is in the adders, beside them: they keep what they got for two cycles.
reg [LANES*32-1:0] in_adders, behind;
reg [1:0] age = 0;
always @(posedge clk) begin
    {in_adders, behind} <= {next, in_adders};
    if (age != 3) age <= age + 1'b1;
end
always @* if (age >= 2) assert (sum == behind);
wire touches_1 = stores_1 && address_1 == place;
wire touches_2 = stores_2 && address_2 == place;
wire touches_3 = stores_3 && address_3 == place;
wire touches_4 = stores_4 && address_4 == place;
always @(posedge clk) begin
    if (touches_1) begin
        newest <= next;
        known <= 1;
    end
    if (rst) known <= 0;
end
always @* if (begun && known) begin
    if (touches_2) assert (newest == in_adders);
    else if (touches_3) assert (newest == sum);
    else assert (newest == data_mem[place]);
    if (touches_4 && !touches_3 && !touches_2) assert (newest == data_4);
    if ((valid_1 || stores_1) && address_1 == place) begin
        // Nothing of this place is between the registers of the adders when the next beat of it comes.
        never_between: assert (!touches_2);
        added_to_newest: assert (stored == newest);
    end
end
// What was read is what stood there, unless a write overtook it.
reg read_known = 0;
always @(posedge clk) read_known <= !rst;
always @* if (begun && known && valid_1 && address_1 == place && !touches_3 && !touches_4)
    was_read: assert (read_reg == data_mem[place]);

always @* if (begun && !rst) begin
    cover (known && add_1 && stores_1 && touches_3 && address_1 == place);
    cover (known && add_1 && stores_1 && touches_4 && !touches_3 && address_1 == place);
    cover (job_valid && !busy_reg && !has_room);
    cover (out_valid && out_last && !first_3 && control_3);
end
