// In the place of `olaf_sums`: no data. What is promised of `unsettled` is that of the real module and its proof: a
// first beat is on its way for four cycles. Whether lanes are large, or not finite, is any.

`default_nettype none

module olaf_sums #(
    parameter SLOTS = 8,
    parameter SLOT = $clog2(SLOTS),
    parameter BEAT = 2,
    parameter BLOCK = 0
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             issue,
    input  wire [SLOT-1:0]  slot,
    input  wire [BEAT-1:0]  beat,
    input  wire [15:0]      lanes,
    input  wire             add,
    input  wire             trial,
    input  wire [511:0]     arrived,
    output wire             not_finite,
    input  wire [SLOTS-1:0] anew,
    output wire [SLOTS-1:0] vast,
    input  wire [SLOT-1:0]  watched,
    output wire             unsettled,
    input  wire             read,
    input  wire [SLOT-1:0]  read_slot,
    input  wire [BEAT-1:0]  read_beat,
    output wire [511:0]     read_data
);

(* anyseq *) reg any_not_finite;
(* anyseq *) reg [SLOTS-1:0] any_vast;
reg [2:0] first_reg = 0;
reg [3*SLOT-1:0] slots_reg;
wire first = issue && beat == 0;
always @(posedge clk) begin
    first_reg <= rst ? 3'd0 : {first_reg[1:0], first};
    slots_reg <= {slots_reg[2*SLOT-1:0], slot};
end
assign unsettled = (first && slot == watched)
    || (first_reg[0] && slots_reg[0 +: SLOT] == watched)
    || (first_reg[1] && slots_reg[SLOT +: SLOT] == watched)
    || (first_reg[2] && slots_reg[2*SLOT +: SLOT] == watched);
assign not_finite = any_not_finite;
assign vast = any_vast;
assign read_data = 512'd0;
wire unused = &{1'b0, lanes, add, trial, arrived, anew, read, read_slot, read_beat};

endmodule
