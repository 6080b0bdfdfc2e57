// What the gate promises. This file is read inside `olaf_gate`. The adder is any function of two numbers:
// `any_add.v`.

// The arrivals (`olaf_arrivals`): an arrival asks until it has its answer, and does not change before it is taken.
// As long as it is there, nothing else is stored; the entry that it meets does not become a merged one. An entry
// that departs before is not met again by this arrival: then it asks no more.
reg past = 0, past_open = 0, asked = 0, gone = 0;
reg [SLOT-1:0] past_slot;
reg [63:0] past_reward;
reg past_merged;
always @(posedge clk) begin
    past <= 1;
    past_open <= !taken && !rst;
    {past_slot, past_reward, past_merged} <= {slot, reward, merged};
    asked <= (asked || compare) && !taken && !rst;
    gone <= (gone || (asked && !compare && !compared)) && !taken && !rst;
end
always @* begin
    if (store) assume (taken);
    if (compare) assume (!compared && !taken && !gone);
    if (slot >= SLOTS) assume (0);
    if (past && past_open && asked) assume (reward == past_reward);
    if (past && past_open && asked && !gone && (compare || compared)) assume (slot == past_slot && merged == past_merged);
end

// The order of the numbers, in another way than in the module: as integers, where -0 is +0 and a number that is
// not one is neither above nor below.
function [64:0] place(input [63:0] number);
    place = number[63] ? 65'h0_8000_0000_0000_0000 - number[62:0] : 65'h0_8000_0000_0000_0000 + number[62:0];
endfunction
function not_a_number(input [63:0] number);
    not_a_number = number[62:0] > {11'h7ff, 52'd0};
endfunction
function above(input [63:0] a, input [63:0] b);
    above = !not_a_number(a) && !not_a_number(b) && place(a) > place(b);
endfunction

// The prover picks a slot: the newest reward that was stored there.
(* anyconst *) reg [SLOT-1:0] watched;
reg [63:0] newest;
reg stored = 0;
always @(posedge clk) if (store && slot == watched) {stored, newest} <= {1'b1, reward};

// What was asked, and the answer to it. The threshold counts in the cycle before the answer.
reg [63:0] asked_reward, asked_entry;
wire [63:0] negative = {!asked_entry[63], asked_entry[62:0]};
wire [63:0] distance = asked_reward ^ {negative[62:0], negative[63]};
wire [63:0] opposite = {!distance[63], distance[62:0]};
reg spec_better, spec_worse, threshold_below = 0;
always @(posedge clk) begin
    if (starts) {asked_reward, asked_entry} <= {reward, merged ? mean : slot == watched && stored ? newest : reward_reg[slot]};
    if (there_reg) begin
        {spec_better, spec_worse} <= {above(distance, threshold), above(opposite, threshold)};
        threshold_below <= threshold[63];
    end
end
always @* begin
    if (stored) newest_reward: assert (reward_reg[watched] == newest);
    if (compared && gate) begin
        of_this_arrival: assert (asked_reward == reward);
        right: assert (better == spec_better && worse == spec_worse);
    end
    if (!gate) no_gate: assert (compared && !better && !worse);
    // A comparison is not begun again before the arrival is taken.
    one_at_a_time: assert ({2'd0, given_reg} + halfway_reg + there_reg + compared_reg <= 1);
    if (starts) assert (!compared);
    if (given_reg) assert (entry_reg == asked_entry && arrival_reg == asked_reward);
    if (busy) assert (asked && asked_reward == reward);
    if (compared_reg) assert (better_reg == spec_better && worse_reg == spec_worse);
    if (compared_reg && !threshold_below) not_both: assert (!(better_reg && worse_reg));
end

// The answer stays until the arrival is taken.
reg past_compared = 0, past_better, past_worse;
always @(posedge clk) begin
    past_compared <= compared_reg && !taken && !rst;
    {past_better, past_worse} <= {better_reg, worse_reg};
end
always @* if (past && past_compared) stays: assert (compared && {better_reg, worse_reg} == {past_better, past_worse});

// The mean is asked for where the entry was merged, and nowhere else.
always @* if (look) begin
    of_the_merged: assert (past_merged);
    of_this_slot: assert (look_slot == past_slot);
end

// In time: three cycles after it is asked, or after the mean is known; the question for the mean takes one more.
reg [2:0] age = 0;
always @(posedge clk)
    if (taken || rst || !asked) age <= 0;
    else if (gate && compare && (!merged || known)) age <= age + 1'b1;
    else if (!compare) age <= 0;
wire [2:0] step = there_reg ? 3 : halfway_reg ? 2 : given_reg ? 1 : 0;
always @* begin
    if (compare && asked && past) begin
        assert (age <= step + 1'b1);
        in_time: assert (age <= 4);
    end
end

always @(posedge clk) if (past && !rst) begin
    cover (taken && compared && gate && better);
    cover (taken && compared && gate && worse && merged);
    cover (taken && compared && gate && !better && !worse && stored && slot == watched);
    cover (taken && halfway_reg);
    cover (age == 3);
end
