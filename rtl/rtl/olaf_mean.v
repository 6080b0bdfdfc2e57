// Weights and rewards of the entries: for each slot the sum of the weights W, and the sum R of each reward times
// its weight. The mean reward of an entry that was merged is R / W (docs/queue.md).
//
// Products are rounded, then added in the order of arrival. One adder serves both sums: W in one cycle, R in the
// next. The updates of a slot may follow each other every two cycles.
//
// A mean takes 18 cycles from its last update on: 6 until both sums are in the memory, and 12 for the division. It is
// begun ahead, for the entry that departs next, as soon as no update of that entry is on the way; and again if an
// update comes to the entry meanwhile.

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

    // The merged entry that departs (`look_now`) or departs next; the merged entry that the gate asks for.
    input  wire             look,
    input  wire             look_now,
    input  wire [SLOT-1:0]  look_slot,
    input  wire             gate_look,
    input  wire [SLOT-1:0]  gate_slot,
    // The mean of the one is known; it will be in the next cycle. The mean of the other is known.
    output wire             known,
    output wire             soon,
    output wire             gate_known,
    // The mean; the weight, with `soon` too.
    output wire [63:0]      known_weight,
    output wire [63:0]      known_mean
);

// Registers of the product.
localparam PRODUCT = 3;
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

// The product is there three cycles after the update came. What goes with it: 1, 2, 3.
wire [63:0]     product;
fp_mul #(.EXPONENT(11), .FRACTION(52), .REGISTERS(REGISTERS_PRODUCT)) multiply (
    .clk(clk), .enable(1'b1), .a(weight), .b(reward), .product(product)
);

reg [PRODUCT:1] take_reg = 0;
reg             add_1_reg, add_2_reg, add_3_reg, trial_1_reg, trial_2_reg, trial_3_reg;
reg [SLOT-1:0]  slot_1_reg, slot_2_reg, slot_3_reg;
reg [63:0]      weight_1_reg, weight_2_reg;

// 2 and 3: W goes to the adder, then R. The word of a slot is W at an even address, R at an odd one.
wire weights = take_reg[2];
wire rewards = take_reg[3];
wire enters = weights || rewards;
wire adds = rewards ? add_3_reg : add_2_reg;
wire tries = rewards ? trial_3_reg : trial_2_reg;
wire [SLOT:0] address = rewards ? {slot_3_reg, 1'b1} : {slot_2_reg, 1'b0};
wire [63:0] addend = rewards ? product : weight_2_reg;

// 4 and 5: R in the adder, and the sum. The sums of a trial have words of their own, behind those of the slots.
(* ram_style = "distributed" *) reg [63:0] sum_reg [0:(4 << SLOT)-1];
// A trial for an update that meets no entry reads a slot that nothing was written to: its product alone counts.
integer i;
initial for (i = 0; i < 4 << SLOT; i = i + 1) sum_reg[i] = 0;
reg            enters_4_reg = 0, enters_5_reg = 0;
reg            tries_4_reg, tries_5_reg;
reg [SLOT:0]   address_4_reg, address_5_reg;
wire [63:0]    result;
wire stores = enters_5_reg && !tries_5_reg;
// The update two cycles before may have been of the same slot.
wire [63:0] augend = stores && address_5_reg == address ? result : sum_reg[{1'b0, address}];

fp_add #(.EXPONENT(11), .FRACTION(52), .REGISTERS(REGISTERS_SUM)) accumulate (
    .clk(clk), .enable(1'b1), .keep(!adds), .a(addend), .b(augend), .sum(result)
);

// A trial: its two sums are kept, then divided.
reg        trying_reg = 0, divides_trial_reg = 0, of_trial_reg = 0;
reg [SLOT-1:0] trial_slot_reg;
reg        product_overflowed_reg, sum_overflowed_reg;
wire       trial_begins, quotient_valid, quotient_soon;
wire [63:0] quotient;
wire       trial_ends = quotient_valid && of_trial_reg;
assign tried = !trying_reg;
assign product_overflowed = product_overflowed_reg;
assign sum_overflowed = sum_overflowed_reg;

wire [SLOTS-1:0] one = 1;
always @(posedge clk) begin
    take_reg <= {take_reg[PRODUCT-1:1], take};
    {add_1_reg, trial_1_reg, slot_1_reg, weight_1_reg} <= {add, trial, slot, weight};
    {add_2_reg, trial_2_reg, slot_2_reg, weight_2_reg} <= {add_1_reg, trial_1_reg, slot_1_reg, weight_1_reg};
    {add_3_reg, trial_3_reg, slot_3_reg} <= {add_2_reg, trial_2_reg, slot_2_reg};
    {enters_4_reg, tries_4_reg, address_4_reg} <= {enters, tries, address};
    {enters_5_reg, tries_5_reg, address_5_reg} <= {enters_4_reg, tries_4_reg, address_4_reg};
    if (enters_5_reg) sum_reg[{tries_5_reg, address_5_reg}] <= result;

    if (take && trial) begin
        trying_reg <= 1'b1;
        trial_slot_reg <= slot;
        sum_overflowed_reg <= 1'b0;
    end
    if (rewards && trial_3_reg) product_overflowed_reg <= &product[62:52];
    if (enters_5_reg && tries_5_reg) begin
        if (&result[62:52]) sum_overflowed_reg <= 1'b1;
        divides_trial_reg <= address_5_reg[0];
    end
    if (trial_begins) {divides_trial_reg, of_trial_reg} <= 2'b01;
    if (trial_ends) begin
        {trying_reg, of_trial_reg} <= 2'b00;
        if (&quotient[62:52]) sum_overflowed_reg <= 1'b1;
    end

    if (stores && result[62:52] >= LARGE) large_reg <= large_reg | one << address_5_reg[SLOT:1];
    if (take && !trial && !add) large_reg[slot] <= vast;
    if (rst) begin
        {enters_4_reg, enters_5_reg} <= 2'd0;
        {trying_reg, divides_trial_reg, of_trial_reg} <= 3'd0;
        take_reg <= 0;
    end
end

// The quotient, of `quotient_slot_reg`. It is begun when all updates of the slot are in its sums; it is no longer
// `fresh` when the next one comes, and then abandoned. A division that is fresh is never abandoned: an
// entry that waits for its mean gets it, and so do a trial and the gate.
reg             fresh_reg = 0;
reg [SLOT-1:0]  quotient_slot_reg;
reg [63:0]      divisor_reg;
wire changes = take && !trial;
wire has = fresh_reg && quotient_slot_reg == look_slot;
wire gate_has = fresh_reg && quotient_slot_reg == gate_slot;
// The departing entry goes first: it holds up the link.
wire of_gate = gate_look && !gate_has && !(look_now && !has);
wire wants = of_gate || (look && !has);
wire [SLOT-1:0] wanted_slot = of_gate ? gate_slot : look_slot;
// While R is in the adder, W is behind it.
wire on_the_way = (take_reg[1] && slot_1_reg == wanted_slot)
    || (take_reg[2] && slot_2_reg == wanted_slot)
    || (take_reg[3] && slot_3_reg == wanted_slot)
    || (enters_5_reg && address_5_reg[SLOT:1] == wanted_slot);
wire divides = fresh_reg && !quotient_valid;
// A trial goes first: an arrival waits for it.
assign trial_begins = divides_trial_reg && !divides;
wire begins = trial_begins || (wants && !on_the_way && !divides && !divides_trial_reg && !of_trial_reg);
wire [SLOT:0] divided = trial_begins ? {1'b1, trial_slot_reg} : {1'b0, wanted_slot};
wire [63:0] divisor = sum_reg[{divided, 1'b0}];
wire [63:0] dividend = sum_reg[{divided, 1'b1}];
wire divisor_ready_unused;

fp_div #(.EXPONENT(11), .FRACTION(52), .STEPS(5)) divide (
    .clk(clk), .rst(rst),
    .s_valid(begins), .s_ready(divisor_ready_unused), .a(dividend), .b(divisor), .abandon(begins),
    .m_soon(quotient_soon), .m_valid(quotient_valid), .m_ready(1'b0), .quotient(quotient)
);

always @(posedge clk) begin
    if (changes && slot == quotient_slot_reg) fresh_reg <= 1'b0;
    if (begins) begin
        fresh_reg <= !trial_begins && !(changes && slot == wanted_slot);
        quotient_slot_reg <= wanted_slot;
        divisor_reg <= divisor;
    end
    if (rst) fresh_reg <= 1'b0;
end

assign known = look && has && quotient_valid;
assign soon = look && has && quotient_soon;
assign gate_known = gate_look && gate_has && quotient_valid;
assign known_weight = divisor_reg;
assign known_mean = quotient;

`ifdef FORMAL
`include "olaf_mean_props.v"
`endif

endmodule

`resetall
