// In the place of `olaf_identifier`: any verdict, and any fields. What is proved of the module, and of
// `olaf_ingress`, is taken for granted: an update has the beats that its lanes call for, here two. Fields are
// narrow: nothing depends on their width.

`default_nettype none

module olaf_identifier (
    input  wire         clk,
    input  wire         rst,
    input  wire [511:0] tdata,
    input  wire [63:0]  tkeep,
    input  wire         passes,
    input  wire         tlast,
    output wire         ended,
    output wire         update,
    output wire         answer,
    output wire [31:0]  job,
    output wire [31:0]  cluster,
    output wire [31:0]  worker,
    output wire [31:0]  session,
    output wire [31:0]  segment,
    output wire [13:0]  lanes,
    output wire [31:0]  number,
    output wire [31:0]  contributors,
    output wire [63:0]  weight,
    output wire [63:0]  reward
);

reg inside = 0, second = 0, ended_reg = 0, two_beats = 0;
always @(posedge clk) begin
    ended_reg <= passes && tlast;
    if (passes) {inside, second, two_beats} <= tlast ? {2'b00, second} : {1'b1, !inside, 1'b0};
    if (rst) {inside, second, ended_reg} <= 3'd0;
end

(* anyseq *) reg       any_update, any_answer, any_worker, any_reward;
(* anyseq *) reg [1:0] any_flow;
(* anyseq *) reg [2:0] any_lanes;
(* anyseq *) reg [1:0] any_contributors;
assign ended = ended_reg;
assign update = ended_reg && two_beats && any_update;
assign answer = ended_reg && !update && any_answer;
assign {job, cluster, segment} = {94'd0, any_flow};
assign {worker, session, number} = {31'd0, any_worker, 64'd0};
assign lanes = {10'd0, 1'b0, any_lanes} + 1'b1;
assign contributors = {30'd0, any_contributors} + 1'b1;
assign weight = 64'd0;
// Not finite, or zero.
assign reward = {64{any_reward}};
wire unused = &{1'b0, tdata, tkeep};

endmodule
