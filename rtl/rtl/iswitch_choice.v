// Takes frames of several queues in turns, a whole frame at a time, and sends them on one output. A queue that
// was served comes last in the next choice, so a frame waits for at most one frame of each other queue.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_choice #(
    // Queues to choose from.
    parameter QUEUES = 5,
    // Bits of a beat with all that belongs to it, its last bit (tlast) lowest.
    parameter WIDTH = 290,
    // Bits of a queue's number.
    parameter QUEUE = $clog2(QUEUES)
) (
    input  wire                    clk,
    input  wire                    rst,

    input  wire [QUEUES-1:0]       s_valid,
    output wire [QUEUES-1:0]       s_ready,
    input  wire [QUEUES*WIDTH-1:0] s_beat,

    output wire                    m_valid,
    input  wire                    m_ready,
    output wire [WIDTH-1:0]        m_beat,
    // The queue of the beat.
    output wire [QUEUE-1:0]        m_queue
);

generate
    if (QUEUES < 2 || QUEUE != $clog2(QUEUES)) begin : g_illegal
        iswitch_choice_needs_two_queues illegal();
    end
endgenerate

reg              valid_reg = 0;
reg [WIDTH-1:0]  beat_reg;
reg [QUEUE-1:0]  queue_reg;
// A frame of `serving_reg` has begun and not ended; otherwise it is the queue that was served last.
reg              inside_reg = 0;
reg [QUEUE-1:0]  serving_reg = 0;

// The first queue behind the last one that has a beat.
reg [QUEUE-1:0]  next;
reg              found;
integer i;
always @* begin
    next = serving_reg;
    found = s_valid[serving_reg];
    for (i = QUEUES - 1; i >= 0; i = i - 1)
        if (s_valid[i] && i[QUEUE-1:0] < serving_reg) begin
            next = i[QUEUE-1:0];
            found = 1;
        end
    for (i = QUEUES - 1; i >= 0; i = i - 1)
        if (s_valid[i] && i[QUEUE-1:0] > serving_reg) begin
            next = i[QUEUE-1:0];
            found = 1;
        end
end

wire [QUEUE-1:0] chosen = inside_reg ? serving_reg : next;
wire moves = !valid_reg || m_ready;
wire takes = moves && (inside_reg ? s_valid[serving_reg] : found);
assign s_ready = takes ? {{QUEUES-1{1'b0}}, 1'b1} << chosen : 0;

reg [WIDTH-1:0] offered;
integer k;
always @* begin
    offered = 0;
    for (k = 0; k < QUEUES; k = k + 1)
        if (chosen == k[QUEUE-1:0]) offered = offered | s_beat[WIDTH*k +: WIDTH];
end

assign m_valid = valid_reg;
assign m_beat = beat_reg;
assign m_queue = queue_reg;

always @(posedge clk) begin
    if (m_ready) valid_reg <= 1'b0;
    if (takes) begin
        valid_reg <= 1'b1;
        beat_reg <= offered;
        queue_reg <= chosen;
        serving_reg <= chosen;
        inside_reg <= !offered[0];
    end
    if (rst) begin
        valid_reg <= 1'b0;
        inside_reg <= 1'b0;
        serving_reg <= 0;
    end
end

`ifdef FORMAL
`include "iswitch_choice_props.v"
`endif

endmodule

`resetall
