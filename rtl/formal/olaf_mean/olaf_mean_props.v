// What the means promise. This file is read inside `olaf_mean`, with the functions of `simple_units.v`.

// A slot, and its sums as they are decided about.
(* anyconst *) reg [SLOT-1:0] watched;
reg there = 0;
reg [63:0] watched_weight, watched_rewards;
wire [63:0] came = weight ^ {reward[31:0], reward[63:32]};
function [63:0] plus(input [63:0] x, input [63:0] y);
    plus = {x[62:0], x[63]} ^ y;
endfunction
wire [63:0] mean = watched_rewards ^ {watched_weight[15:0], watched_weight[63:16]};
wire comes = changes && slot == watched;
always @(posedge clk) begin
    if (comes) begin
        there <= 1;
        watched_weight <= add ? plus(watched_weight, weight) : weight;
        watched_rewards <= add ? plus(watched_rewards, came) : came;
    end
    if (rst) there <= 0;
end

// The arrivals: a cycle between two updates; an entry is there before something is added to it. A trial comes
// alone.
reg past = 0, past_take;
reg [3:0] quiet = 15;
always @(posedge clk) begin
    past <= 1;
    past_take <= take;
    quiet <= take ? 0 : quiet + (quiet != 15);
end
always @* begin
    assume (watched < SLOTS && slot < SLOTS && look_slot < SLOTS && gate_slot < SLOTS);
    assume (rst || past);
    if (trial) assume (take && add && quiet >= 8);
    if (trying_reg) assume (!take);
    if (past && past_take) assume (!take);
    if (comes && add) assume (there);
end

reg past_soon = 0;
always @(posedge clk) past_soon <= soon && look_slot == watched && !comes && !rst;
// Where the updates of the watched slot are, and what the sums are with each of them: `at[n]` came n cycles ago. A
// weight enters the adder after two cycles and is in the memory after five, a product one cycle later.
reg [5:1] at = 0, trial_at = 0;
reg [63:0] weight_1, weight_2, weight_3, weight_4, rewards_1, rewards_2, rewards_3, rewards_4, rewards_5;
reg has_weight = 0, has_rewards = 0;
reg [63:0] stored_weight, stored_rewards;
always @(posedge clk) begin
    at <= {at[4:1], comes};
    trial_at <= {trial_at[4:1], take && trial};
    weight_1 <= add ? plus(watched_weight, weight) : weight;
    rewards_1 <= add ? plus(watched_rewards, came) : came;
    {weight_2, weight_3, weight_4} <= {weight_1, weight_2, weight_3};
    {rewards_2, rewards_3, rewards_4, rewards_5} <= {rewards_1, rewards_2, rewards_3, rewards_4};
    if (at[4]) {has_weight, stored_weight} <= {1'b1, weight_4};
    if (at[5]) {has_rewards, stored_rewards} <= {1'b1, rewards_5};
    if (rst) {at, trial_at, has_weight, has_rewards} <= 0;
end
// The sums before the update that came one, two or three cycles ago.
wire [63:0] weight_before_3 = at[4] ? weight_4 : stored_weight;
wire [63:0] weight_before_2 = at[3] ? weight_3 : weight_before_3;
wire [63:0] weight_before_1 = at[2] ? weight_2 : weight_before_2;
wire [63:0] rewards_before_4 = at[5] ? rewards_5 : stored_rewards;
wire [63:0] rewards_before_3 = at[4] ? rewards_4 : rewards_before_4;
wire [63:0] rewards_before_2 = at[3] ? rewards_3 : rewards_before_3;
wire [63:0] rewards_before_1 = at[2] ? rewards_2 : rewards_before_2;

(* hierconn *) wire [63:0] \multiply.first , \multiply.second , \multiply.third ;
(* hierconn *) wire [63:0] \accumulate.first , \accumulate.second ;
(* hierconn *) wire [63:0] \divide.result ;
(* hierconn *) wire \divide.busy , \divide.last , \divide.done ;

always @* if (past) begin
    // What is in the pipeline.
    assert (!take_reg[1] || past_take);
    assert (!(take_reg[2] && (take_reg[1] || take_reg[3])));
    assert (enters_4_reg == (take_reg[3] || (enters_4_reg && address_4_reg[0])));
    if (take_reg[3]) assert (address_4_reg == {slot_3_reg, 1'b0} && tries_4_reg == trial_3_reg);
    if (enters_4_reg && address_4_reg[0]) assert (enters_5_reg && address_5_reg == {address_4_reg[SLOT:1], 1'b0});
    assert (at[1] == (take_reg[1] && slot_1_reg == watched && !trial_1_reg));
    assert (at[2] == (take_reg[2] && slot_2_reg == watched && !trial_2_reg));
    assert (at[3] == (take_reg[3] && slot_3_reg == watched && !trial_3_reg));
    assert (at[4] == (enters_4_reg && address_4_reg == {watched, 1'b1} && !tries_4_reg));
    assert (at[4] == (enters_5_reg && address_5_reg == {watched, 1'b0} && !tries_5_reg));
    assert (at[5] == (enters_5_reg && address_5_reg == {watched, 1'b1} && !tries_5_reg));
    // One sum after the other.
    if (at[1] && add_1_reg) assert ((at[4:2] != 0 || has_weight) && (at[5:2] != 0 || has_rewards));
    if (at[2] && add_2_reg) assert ((at[4:3] != 0 || has_weight) && (at[5:3] != 0 || has_rewards));
    if (at[3] && add_3_reg) assert (at[5:4] != 0 || has_rewards);
    if (at[1]) assert (weight_1 == (add_1_reg ? plus(weight_before_1, weight_1_reg) : weight_1_reg));
    if (at[2]) assert (weight_2 == (add_2_reg ? plus(weight_before_2, weight_2_reg) : weight_2_reg));
    if (at[3]) assert (weight_3 == \accumulate.first );
    if (at[4]) assert (weight_4 == \accumulate.second );
    if (at[1]) assert (rewards_1 == (add_1_reg ? plus(rewards_before_1, \multiply.first ) : \multiply.first ));
    if (at[2]) assert (rewards_2 == (add_2_reg ? plus(rewards_before_2, \multiply.second ) : \multiply.second ));
    if (at[3]) assert (rewards_3 == (add_3_reg ? plus(rewards_before_3, \multiply.third ) : \multiply.third ));
    if (at[4]) assert (rewards_4 == \accumulate.first );
    if (at[5]) assert (rewards_5 == \accumulate.second );
    if (has_weight) assert (sum_reg[{1'b0, watched, 1'b0}] == stored_weight);
    if (has_rewards) assert (sum_reg[{1'b0, watched, 1'b1}] == stored_rewards);
    if (at[5] || has_rewards) assert (has_weight);
    assert (there == (at != 0 || has_rewards));
    if (there) assert (watched_weight == (at[1] ? weight_1 : weight_before_1));
    if (there) assert (watched_rewards == (at[1] ? rewards_1 : rewards_before_1));
    // A trial, where it is.
    assert (trial_at[1] == (take_reg[1] && trial_1_reg) && trial_at[2] == (take_reg[2] && trial_2_reg));
    assert (trial_at[3] == (take_reg[3] && trial_3_reg));
    assert (trial_at[4] == (enters_4_reg && address_4_reg[0] && tries_4_reg));
    assert (trial_at[4] == (enters_5_reg && !address_5_reg[0] && tries_5_reg));
    assert (trial_at[5] == (enters_5_reg && address_5_reg[0] && tries_5_reg));
    assert ({2'd0, trial_at[1]} + trial_at[2] + trial_at[3] + trial_at[4] + trial_at[5]
        + divides_trial_reg + of_trial_reg == {2'd0, trying_reg});
    // The division.
    assert ({1'b0, \divide.busy } + \divide.last + \divide.done <= 1);
    assert (!(fresh_reg && of_trial_reg));
    if (fresh_reg || of_trial_reg) assert (\divide.busy || \divide.last || \divide.done );
    if (fresh_reg && quotient_slot_reg == watched && there)
        assert (\divide.result == mean && divisor_reg == watched_weight);
    if (past_soon) assert (fresh_reg && quotient_slot_reg == watched && \divide.done );
end

// A mean that is known is that of all updates that were decided about, and so is the weight.
always @* if (there) begin
    if (known && look_slot == watched) newest: assert (known_mean == mean && known_weight == watched_weight);
    if (gate_known && gate_slot == watched) for_the_gate: assert (known_mean == mean);
    if (soon && look_slot == watched) weight_too: assert (known_weight == watched_weight);
    if (past_soon) after_soon: assert (known_mean == mean);
end

// A division whose result is wanted is not abandoned: nobody can starve a departure, a trial or the gate.
always @* begin
    if (begins) kept: assert (!(fresh_reg && !quotient_valid) && !(of_trial_reg && !quotient_valid));
end

always @(posedge clk) if (past && !rst) begin
    alone: cover (known && look_slot == watched && there && quiet > 9);
    asked: cover (gate_known && gate_slot == watched && there);
    again: cover (begins && !fresh_reg && !quotient_valid && there && quotient_slot_reg == watched && quiet < 8);
    begun_too_soon: cover (begins && changes && slot == wanted_slot);
    trial_over: cover (trial_ends && there);
end
