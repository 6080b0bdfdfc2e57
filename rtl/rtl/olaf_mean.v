// Weights and rewards of the entries: for each slot the sum of the weights W, and the sum R of each reward times
// its weight. The mean reward of an entry that was merged is R / W (docs/queue.md).
//
// Products are rounded, then added in the order of arrival. One adder serves both sums: W in one cycle, R in the
// next. The updates of a slot may follow each other every two cycles.
//
// The division takes 21 cycles or more. It is begun ahead, for the entry that departs next, and again if that
// entry changes.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_mean #(
    // Slots, and bits of a slot's number.
    parameter SLOTS = 8,
    parameter SLOT = $clog2(SLOTS)
) (
    input  wire             clk,
    input  wire             rst,

    // An update goes to a slot. At least one cycle is between two of them.
    input  wire             take,
    input  wire [SLOT-1:0]  slot,
    input  wire [63:0]      weight,
    input  wire [63:0]      reward,
    // It is added to the sums; otherwise they begin anew with it.
    input  wire             add,
    // The sums and their quotient are computed, and not stored. No update is on the way before.
    input  wire             trial,
    // In the same cycle, without `take` too: the product of weight and reward could be infinite; a sum or the
    // mean with the entry in `slot` could. If these are low, none can.
    output wire             risky_product,
    output wire             risky_sum,
    // The last trial is over: its product was infinite; a sum or the mean was.
    output wire             tried,
    output wire             product_overflowed,
    output wire             sum_overflowed,

    // The entry that the quotient is wanted of: it was merged.
    input  wire             look,
    input  wire [SLOT-1:0]  look_slot,
    // The weight and the mean reward of that entry.
    output wire             known,
    output wire [63:0]      known_weight,
    output wire [63:0]      known_mean
);

// Registers of the product, and cycles from `take` to the sums in the memory.
localparam PRODUCT = 3;
localparam SETTLED = PRODUCT + 6;
localparam [5:0] REGISTERS_PRODUCT = 6'b101010;
localparam [5:0] REGISTERS_SUM = 6'b100100;
// Exponents from here on are large. Fewer than fifteen updates are on the way at a time, and each sum adds at
// most one to the exponent: sums of what is not large stay below the infinite exponent of 2047. The mean of
// rewards that are not large is not infinite, but for its rounding no larger than the largest.
localparam [10:0] LARGE = 2032;
localparam [11:0] LARGE_PRODUCT = 2032 + 1022;

reg [SLOTS-1:0] large_reg = 0;
wire [11:0] product_exponent = {1'b0, weight[62:52]} + {1'b0, reward[62:52]};
wire vast = weight[62:52] >= LARGE || reward[62:52] >= LARGE || risky_product;
assign risky_product = product_exponent >= LARGE_PRODUCT;
assign risky_sum = vast || large_reg[slot];

// 1: the operands. Then the product, and beside it what goes with it.
reg            take_1_reg = 0;
reg            add_1_reg, trial_1_reg;
reg [SLOT-1:0] slot_1_reg;
reg [63:0]     weight_1_reg, reward_1_reg;
wire [63:0]    product;

fp_mul #(.EXPONENT(11), .FRACTION(52), .REGISTERS(REGISTERS_PRODUCT)) multiply (
    .clk(clk), .enable(1'b1), .a(weight_1_reg), .b(reward_1_reg), .product(product)
);

reg [PRODUCT-1:0] take_2_reg = 0;
wire [SLOT+66-1:0] beside [0:PRODUCT];
assign beside[0] = {add_1_reg, trial_1_reg, slot_1_reg, weight_1_reg};
genvar step;
generate
    for (step = 0; step < PRODUCT; step = step + 1) begin : g_step
        pipe #(.WIDTH(SLOT + 66), .REGISTERED(1)) keep (
            .clk(clk), .enable(1'b1), .in(beside[step]), .out(beside[step+1])
        );
    end
endgenerate

// 3: W in this cycle, R in the next. The word of a slot is W at an even address, R at an odd one.
reg             rewards_reg = 0, add_3_reg, trial_3_reg;
reg [SLOT-1:0]  slot_3_reg;
reg [63:0]      product_3_reg;
wire            add_2, trial_2;
wire [SLOT-1:0] slot_2;
wire [63:0]     weight_2;
assign {add_2, trial_2, slot_2, weight_2} = beside[PRODUCT];
wire weights = take_2_reg[PRODUCT-1];
wire enters = weights || rewards_reg;
wire adds = rewards_reg ? add_3_reg : add_2;
wire tries = rewards_reg ? trial_3_reg : trial_2;
wire [SLOT:0] address = rewards_reg ? {slot_3_reg, 1'b1} : {slot_2, 1'b0};
wire [63:0] addend = rewards_reg ? product_3_reg : weight_2;

// 5: the sum.
(* ram_style = "distributed" *) reg [63:0] sum_reg [0:2*SLOTS-1];
// A trial for an update that meets no entry reads a slot that nothing was written to: its product alone counts.
integer i;
initial for (i = 0; i < 2*SLOTS; i = i + 1) sum_reg[i] = 0;
reg            enters_4_reg = 0, enters_5_reg = 0;
reg            adds_4_reg, adds_5_reg, tries_4_reg, tries_5_reg;
reg [SLOT:0]   address_4_reg, address_5_reg;
reg [63:0]     addend_4_reg, addend_5_reg;
wire [63:0]    sum;
wire [63:0] result = adds_5_reg ? sum : addend_5_reg;
wire stores = enters_5_reg && !tries_5_reg;
// The update two cycles before may have been of the same slot.
wire [63:0] augend = stores && address_5_reg == address ? result : sum_reg[address];

fp_add #(.EXPONENT(11), .FRACTION(52), .REGISTERS(REGISTERS_SUM)) accumulate (
    .clk(clk), .enable(1'b1), .a(augend), .b(addend), .sum(sum)
);

// A trial: its two sums are kept, then divided.
reg        trying_reg = 0, divides_trial_reg = 0;
reg        product_overflowed_reg, sum_overflowed_reg;
reg [63:0] trial_weight_reg, trial_rewards_reg;
wire       trial_divides, trial_quotient;
wire [63:0] quotient;
assign tried = !trying_reg;
assign product_overflowed = product_overflowed_reg;
assign sum_overflowed = sum_overflowed_reg;

wire [SLOTS-1:0] one = 1;
always @(posedge clk) begin
    take_1_reg <= take;
    {add_1_reg, trial_1_reg, slot_1_reg} <= {add, trial, slot};
    {weight_1_reg, reward_1_reg} <= {weight, reward};
    take_2_reg <= {take_2_reg[PRODUCT-2:0], take_1_reg};
    rewards_reg <= weights;
    {add_3_reg, trial_3_reg, slot_3_reg, product_3_reg} <= {add_2, trial_2, slot_2, product};
    {enters_4_reg, adds_4_reg, tries_4_reg, address_4_reg, addend_4_reg} <=
        {enters, adds, tries, address, addend};
    {enters_5_reg, adds_5_reg, tries_5_reg, address_5_reg, addend_5_reg} <=
        {enters_4_reg, adds_4_reg, tries_4_reg, address_4_reg, addend_4_reg};
    if (stores) sum_reg[address_5_reg] <= result;

    if (take && trial) begin
        trying_reg <= 1'b1;
        sum_overflowed_reg <= 1'b0;
    end
    if (rewards_reg && trial_3_reg) product_overflowed_reg <= &product_3_reg[62:52];
    if (enters_5_reg && tries_5_reg) begin
        if (&result[62:52]) sum_overflowed_reg <= 1'b1;
        if (address_5_reg[0]) trial_rewards_reg <= result;
        else trial_weight_reg <= result;
        divides_trial_reg <= address_5_reg[0];
    end
    if (trial_divides) divides_trial_reg <= 1'b0;
    if (trial_quotient) begin
        trying_reg <= 1'b0;
        if (&quotient[62:52]) sum_overflowed_reg <= 1'b1;
    end

    if (stores && result[62:52] >= LARGE) large_reg <= large_reg | one << address_5_reg[SLOT:1];
    if (take && !trial && !add) large_reg[slot] <= vast;
    if (rst) begin
        {take_1_reg, rewards_reg, enters_4_reg, enters_5_reg} <= 4'd0;
        {trying_reg, divides_trial_reg} <= 2'd0;
        take_2_reg <= 0;
    end
end

// The quotient. It is begun when all updates of the slot are in its sums, and holds until the next one comes.
localparam QUIET = $clog2(SETTLED + 1);
reg [QUIET-1:0] quiet_reg = 0;
reg [SLOT-1:0]  look_reg = 0, quotient_slot_reg;
reg             dividing_reg = 0, stale_reg, have_reg = 0;
reg [63:0]      mean_reg;
wire [63:0] look_weight = sum_reg[{look_slot, 1'b0}];
wire [63:0] look_rewards = sum_reg[{look_slot, 1'b1}];
wire have = have_reg && quotient_slot_reg == look_slot;
wire settled = quiet_reg == SETTLED[QUIET-1:0] && look_reg == look_slot;
wire changes = take && !trial;
wire divisor_ready, quotient_valid;
// A trial goes first: an arrival waits for it.
wire divides = look && settled && !have && !dividing_reg && !divides_trial_reg
    && !(changes && slot == look_slot);
assign trial_divides = divides_trial_reg && divisor_ready;
reg of_trial_reg = 0;
assign trial_quotient = quotient_valid && of_trial_reg;

fp_div #(.EXPONENT(11), .FRACTION(52), .STEPS(3)) divide (
    .clk(clk), .rst(rst),
    .s_valid(divides || divides_trial_reg), .s_ready(divisor_ready),
    .a(divides_trial_reg ? trial_rewards_reg : look_rewards),
    .b(divides_trial_reg ? trial_weight_reg : look_weight),
    .m_valid(quotient_valid), .m_ready(1'b1), .quotient(quotient)
);

always @(posedge clk) begin
    look_reg <= look_slot;
    if (look_reg != look_slot || (changes && slot == look_slot)) quiet_reg <= 0;
    else if (!settled) quiet_reg <= quiet_reg + 1'b1;
    if (trial_divides) of_trial_reg <= 1'b1;
    if (divides && divisor_ready) begin
        of_trial_reg <= 1'b0;
        dividing_reg <= 1'b1;
        stale_reg <= 1'b0;
        have_reg <= 1'b0;
        quotient_slot_reg <= look_slot;
    end
    if (quotient_valid && !of_trial_reg) begin
        dividing_reg <= 1'b0;
        have_reg <= !stale_reg;
        mean_reg <= quotient;
    end
    if (changes && slot == quotient_slot_reg) begin
        stale_reg <= 1'b1;
        have_reg <= 1'b0;
    end
    if (rst) begin
        {dividing_reg, have_reg} <= 2'd0;
        quiet_reg <= 0;
    end
end

assign known = have && look;
assign known_weight = look_weight;
assign known_mean = mean_reg;

endmodule

`resetall
