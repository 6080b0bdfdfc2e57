// The counters of `olaf_queue`, over AXI4-Lite (`axil_counters`: type 0x4f4c4151, "OLAQ"). Counter by counter:
//
//   frames       0 malformed framing   1 too long         2 refused updates and answers
//                3 passed on           4 not passed on: no room
//                5 answers written into, also those for which there was no room then
//   updates      6 appended            7 merged           8 replaced      9 filtered     10 dropped
//               11 rejected: not finite                  12 rejected: wrong size
//               13 rejected: overflow 14 departed
//   contributors of the updates that were
//               15 appended           16 merged          17 replacing    18 filtered     19 dropped
//               20 rejected           21 of entries that were replaced   22 departed
//
// An update that is well-formed is in exactly one of the counters 6 to 13. The contributors in the queue are
// 15 + 16 + 17 - 21 - 22.
//
// A read gives the sum of everything up to its instant. The counters that count single events are in a RAM of one
// word a counter (`event_counters`); contributors that come with a fate, which is one of six, are added to a word of
// another one.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_queue_counters (
    input  wire        clk,
    input  wire        rst,

    // Frames: each is high for a cycle.
    input  wire        framing,
    input  wire        too_long,
    input  wire        refused,
    input  wire        passed,
    input  wire        no_room,
    input  wire        stamped,
    // An update is decided about: {rejected, dropped, filtered, replaced, merged, appended}. Why it is
    // rejected, if not for a number that is not finite.
    input  wire [5:0]  fate,
    input  wire        wrong_size,
    input  wire        overflow,
    input  wire [31:0] contributors,
    input  wire [31:0] displaced,
    // The departing entry's slot is freed.
    input  wire        ended,
    input  wire [31:0] departing_contributors,

    input  wire [11:0] s_axil_awaddr,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_wdata,
    input  wire [3:0]  s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [1:0]  s_axil_bresp,
    output wire        s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [11:0] s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output wire [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready
);

// Counters of single events.
localparam EVENTS = 15;

// The events and the numbers are kept for a cycle: they come late in their own.
reg [14:0]  frame_reg = 0;
reg [5:0]   fate_reg = 0;
reg         ended_reg = 0;
reg [31:0]  contributors_reg, displaced_reg, departing_reg;
always @(posedge clk) begin
    frame_reg <= {
        ended, overflow, wrong_size, fate[5] && !wrong_size && !overflow, fate[4:0], stamped, no_room,
        passed, refused, too_long, framing
    };
    {fate_reg, ended_reg} <= {fate, ended};
    {contributors_reg, displaced_reg, departing_reg} <= {contributors, displaced, departing_contributors};
    if (rst) {frame_reg, fate_reg, ended_reg} <= 22'd0;
end

// Which counter a host reads.
wire              reads;
wire [8:0]        asked;
wire              asks_event = reads && asked < EVENTS[8:0];
wire [63:0]       of_events;
event_counters #(.COUNTERS(EVENTS)) events (
    .clk(clk), .rst(rst), .happens(frame_reg), .reads(asks_event), .counter(asked[3:0]), .value(of_events)
);

// Contributors by fate: a word each, in LUT RAM. A word that was not written since the reset counts as 0.
(* ram_style = "distributed" *) reg [63:0] by_fate_reg [0:7];
reg [5:0] written_reg = 0;
reg [2:0] fate_number;
integer i;
always @* begin
    fate_number = 0;
    for (i = 0; i < 6; i = i + 1) if (fate_reg[i]) fate_number = fate_number | i[2:0];
end
wire [7:0]  written = {2'd0, written_reg};
wire [2:0]  fate_asked = asked[2:0] - EVENTS[2:0];
wire [63:0] held = by_fate_reg[fate_number];
wire [63:0] by_fate = by_fate_reg[fate_asked];
reg  [63:0] displaced_total_reg, departed_total_reg;
always @(posedge clk) begin
    if (fate_reg != 0)
        by_fate_reg[fate_number] <= (written[fate_number] ? held : 64'd0) + {32'd0, contributors_reg};
    written_reg <= written_reg | fate_reg;
    displaced_total_reg <= displaced_total_reg + {32'd0, fate_reg[2] ? displaced_reg : 32'd0};
    departed_total_reg <= departed_total_reg + {32'd0, ended_reg ? departing_reg : 32'd0};
    if (rst) begin
        written_reg <= 6'd0;
        displaced_total_reg <= 64'd0;
        departed_total_reg <= 64'd0;
    end
end

reg [63:0] value;
always @* begin
    value = written[fate_asked] ? by_fate : 64'd0;
    if (asked < EVENTS[8:0]) value = of_events;
    else if (asked == EVENTS[8:0] + 9'd6) value = displaced_total_reg;
    else if (asked == EVENTS[8:0] + 9'd7) value = departed_total_reg;
end

axil_block #(
    .COUNTERS(EVENTS + 8), .ADDRESS(12), .TYPE(32'h4f4c4151), .VERSION(32'd1), .NEXT(32'd0)
) block (
    .clk(clk), .rst(rst), .reads(reads), .counter(asked), .value(value),
    .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
    .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
    .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
    .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
    .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
    .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready)
);

`ifdef FORMAL
`include "olaf_queue_counters_props.v"
`endif

endmodule

`resetall
