// In place of `event_counters`, which has a proof of its own: a read gives anything. What its proof asks for is checked here.

module event_counters #(
    parameter COUNTERS = 15,
    parameter COUNTER = $clog2(COUNTERS),
    parameter TOTAL = 64
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [COUNTERS-1:0] happens,
    input  wire                reads,
    input  wire [COUNTER-1:0]  counter,
    output wire [TOTAL-1:0]    value
);

(* anyseq *) wire [TOTAL-1:0] any;
assign value = any;

reg past_reads = 0;
always @(posedge clk) past_reads <= reads && !rst;
always @* if (reads) asked: assert (!past_reads && counter < COUNTERS);

wire unused = &{1'b0, happens};

endmodule
