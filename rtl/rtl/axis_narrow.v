// Sends wide beats as narrow ones.
//
// Of the last beat of a frame only the narrow beats up to the last kept byte are sent, so the last narrow beat has
// a byte. All other beats are sent whole. A frame with a mistake keeps it: a hole stays a hole, and a last beat
// without a byte is sent as one narrow beat without a byte.
//
// One narrow beat a cycle, also from one wide beat to the next. The first one is offered in the cycle after the
// wide beat came.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module axis_narrow #(
    // Bits of a wide beat: 2, 4, 8.. times as many as of a narrow one.
    parameter WIDE = 512,
    // Bits of a narrow beat: whole bytes.
    parameter NARROW = 256
) (
    input  wire                clk,
    input  wire                rst,

    input  wire [WIDE-1:0]     s_axis_tdata,
    input  wire [WIDE/8-1:0]   s_axis_tkeep,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire                s_axis_tlast,

    output wire [NARROW-1:0]   m_axis_tdata,
    output wire [NARROW/8-1:0] m_axis_tkeep,
    output wire                m_axis_tvalid,
    input  wire                m_axis_tready,
    output wire                m_axis_tlast
);

localparam RATIO = WIDE / NARROW;
localparam PLACE = $clog2(RATIO);
localparam BYTES = NARROW / 8;

generate
    if (NARROW % 8 != 0 || RATIO < 2 || WIDE != NARROW << PLACE) begin : g_illegal
        axis_narrow_needs_a_power_of_two illegal();
    end
endgenerate

reg              valid_reg = 0, last_reg;
reg [WIDE-1:0]   data_reg;
reg [WIDE/8-1:0] keep_reg;
// The narrow beat that is offered, and the last one of this wide beat.
reg [PLACE-1:0]  place_reg = 0, end_reg;

wire ends = place_reg == end_reg;
assign s_axis_tready = !valid_reg || (m_axis_tready && ends);

reg [PLACE-1:0] end_next;
integer i;
always @* begin
    end_next = 0;
    for (i = 0; i < RATIO; i = i + 1)
        if (!s_axis_tlast || |s_axis_tkeep[BYTES*i +: BYTES]) end_next = i[PLACE-1:0];
end

reg [NARROW-1:0] data;
reg [BYTES-1:0]  keep;
integer k;
always @* begin
    {data, keep} = 0;
    for (k = 0; k < RATIO; k = k + 1)
        if (place_reg == k[PLACE-1:0])
            {data, keep} = {data_reg[NARROW*k +: NARROW], keep_reg[BYTES*k +: BYTES]};
end

always @(posedge clk) begin
    if (m_axis_tready) place_reg <= place_reg + 1'b1;
    if (s_axis_tready) begin
        valid_reg <= s_axis_tvalid;
        {data_reg, keep_reg, last_reg} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast};
        end_reg <= end_next;
        place_reg <= 0;
    end
    if (rst) valid_reg <= 1'b0;
end

assign m_axis_tdata = data;
assign m_axis_tkeep = keep;
assign m_axis_tvalid = valid_reg;
assign m_axis_tlast = last_reg && ends;

`ifdef FORMAL
`include "axis_narrow_props.v"
`endif

endmodule

`resetall
