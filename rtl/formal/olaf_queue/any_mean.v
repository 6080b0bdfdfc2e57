// In the place of `olaf_mean`: a mean is known, and a trial is over, after any time of at most WAIT cycles. The
// real module takes longer; see its own proof for how long.

`default_nettype none

module olaf_mean #(
    parameter SLOTS = 8,
    parameter SLOT = $clog2(SLOTS)
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             take,
    input  wire [SLOT-1:0]  slot,
    input  wire [63:0]      weight,
    input  wire [63:0]      reward,
    input  wire             add,
    input  wire             trial,
    output wire             risky_product,
    output wire             risky_sum,
    output wire             tried,
    output wire             product_overflowed,
    output wire             sum_overflowed,
    input  wire             look,
    input  wire             look_now,
    input  wire [SLOT-1:0]  look_slot,
    input  wire             gate_look,
    input  wire [SLOT-1:0]  gate_slot,
    output wire             known,
    output wire             soon,
    output wire             gate_known,
    output wire [63:0]      known_weight,
    output wire [63:0]      known_mean
);

localparam [1:0] WAIT = 2;
(* anyseq *) reg any_known, any_soon, any_tried, any_product, any_sum;
(* anyseq *) reg any_risky_product, any_risky_sum;
reg [1:0] looked = 0, tries = 0;
assign known = look && (any_known || looked == WAIT);
assign soon = look && any_soon;
assign gate_known = 1'b0;
assign tried = any_tried || tries == WAIT;
assign {risky_product, risky_sum} = {any_risky_product, any_risky_sum};
assign {product_overflowed, sum_overflowed} = {any_product, any_sum};
assign {known_weight, known_mean} = 128'd0;
always @(posedge clk) begin
    looked <= !look || known || rst ? 0 : looked + 1'b1;
    tries <= tried || rst ? 0 : tries + 1'b1;
end
wire unused = &{1'b0, take, slot, weight, reward, add, trial, look_now, look_slot, gate_look, gate_slot};

endmodule
