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

// A mean that is known is that of all updates that were decided about, and so is the weight.
reg past_soon = 0;
always @(posedge clk) past_soon <= soon && look_slot == watched && !comes && !rst;
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
