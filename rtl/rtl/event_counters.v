// Counters of events, 64 bit each, in a RAM of one word a counter. Any number of events may happen in a cycle.
//
// Each counter has a few bits beside the RAM for its most recent events. One counter a cycle is visited: its recent
// events are added to its word. The visits go round; a read is a visit, too, so that it gives the exact number. A
// read may come every second cycle, so a round takes two cycles a counter at most, and the few bits are enough.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module event_counters #(
    // Counters, 2 at least.
    parameter COUNTERS = 15,
    // Bits of a counter's number.
    parameter COUNTER = $clog2(COUNTERS),
    // Bits of a counter in the RAM.
    parameter TOTAL = 64
) (
    input  wire                clk,
    input  wire                rst,

    // For each counter: its event happens in this cycle.
    input  wire [COUNTERS-1:0] happens,

    // A counter is read. Never in two cycles that follow each other.
    input  wire                reads,
    input  wire [COUNTER-1:0]  counter,
    // Its events before this cycle.
    output wire [TOTAL-1:0]    value
);

// At most so many events of a counter are recent: one in the cycle of its visit, then one a cycle.
localparam RECENT = $clog2(2*COUNTERS + 1);
localparam [COUNTER-1:0] LAST = COUNTERS[COUNTER-1:0] - 1'b1;

generate
    if (COUNTERS < 2 || COUNTER != $clog2(COUNTERS) || TOTAL < RECENT) begin : g_illegal
        event_counters_need_two_counters illegal();
    end
endgenerate

(* ram_style = "distributed" *) reg [TOTAL-1:0] total_reg [0:(1 << COUNTER)-1];
// A word that was not written since the reset counts as 0.
reg [COUNTERS-1:0] written_reg = 0;
reg [RECENT-1:0]   recent_reg [0:COUNTERS-1];
reg [COUNTER-1:0]  turn_reg = 0;

wire [COUNTER-1:0] visited = reads ? counter : turn_reg;
reg [RECENT-1:0] recent;
reg written;
integer i;
always @* begin
    recent = 0;
    written = 1'b0;
    for (i = 0; i < COUNTERS; i = i + 1)
        if (visited == i[COUNTER-1:0]) begin
            recent = recent | recent_reg[i];
            written = written || written_reg[i];
        end
end
wire [TOTAL-1:0] held = total_reg[visited];
assign value = (written ? held : {TOTAL{1'b0}}) + {{TOTAL-RECENT{1'b0}}, recent};

always @(posedge clk) begin
    total_reg[visited] <= value;
    if (!reads) turn_reg <= turn_reg == LAST ? {COUNTER{1'b0}} : turn_reg + 1'b1;
    if (rst) turn_reg <= 0;
end

genvar number;
generate
    for (number = 0; number < COUNTERS; number = number + 1) begin : g_counter
        wire visit = visited == number;
        always @(posedge clk) begin
            recent_reg[number] <= (visit ? {RECENT{1'b0}} : recent_reg[number])
                + {{RECENT-1{1'b0}}, happens[number]};
            if (visit) written_reg[number] <= 1'b1;
            if (rst) begin
                recent_reg[number] <= 0;
                written_reg[number] <= 1'b0;
            end
        end
    end
endgenerate

`ifdef FORMAL
`include "event_counters_props.v"
`endif

endmodule

`resetall
