// Puts narrow beats together to wide ones. A frame never shares a wide beat with another.
//
// A narrow beat has a mistake if a byte in the middle of its frame is not kept, or if it is the last one and keeps
// no byte. The wide beat then does not keep its first byte, so it has a hole, too. Without that, an empty last
// beat behind a full one would vanish.
//
// One narrow beat a cycle. A wide beat is offered in the cycle after its last narrow beat came.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module axis_widen #(
    // Bits of a narrow beat: whole bytes.
    parameter NARROW = 256,
    // Bits of a wide beat: 2, 4, 8.. times as many.
    parameter WIDE = 512
) (
    input  wire                clk,
    input  wire                rst,

    input  wire [NARROW-1:0]   s_axis_tdata,
    input  wire [NARROW/8-1:0] s_axis_tkeep,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire                s_axis_tlast,

    // Where no narrow beat came, bytes are zeros and are not kept.
    output wire [WIDE-1:0]     m_axis_tdata,
    output wire [WIDE/8-1:0]   m_axis_tkeep,
    output wire                m_axis_tvalid,
    input  wire                m_axis_tready,
    output wire                m_axis_tlast
);

localparam RATIO = WIDE / NARROW;
localparam PLACE = $clog2(RATIO);
localparam BYTES = NARROW / 8;

generate
    if (NARROW % 8 != 0 || RATIO < 2 || WIDE != NARROW << PLACE) begin : g_illegal
        axis_widen_needs_a_power_of_two illegal();
    end
endgenerate

// Where the next narrow beat goes.
reg [PLACE-1:0]  place_reg = 0;
reg              valid_reg = 0, last_reg;
reg [WIDE-1:0]   data_reg;
reg [WIDE/8-1:0] keep_reg;

assign s_axis_tready = !valid_reg || m_axis_tready;
wire takes = s_axis_tvalid && s_axis_tready;
wire whole = s_axis_tlast || &place_reg;
// The kept bytes are the first ones, and there is one.
wire dense = s_axis_tkeep[0]
    && (s_axis_tlast ? (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == 0 : &s_axis_tkeep);

integer i;
always @(posedge clk) begin
    if (m_axis_tready) valid_reg <= 1'b0;
    if (takes) begin
        valid_reg <= whole;
        last_reg <= s_axis_tlast;
        place_reg <= whole ? {PLACE{1'b0}} : place_reg + 1'b1;
        for (i = 0; i < RATIO; i = i + 1)
            if (place_reg == i[PLACE-1:0]) begin
                data_reg[NARROW*i +: NARROW] <= s_axis_tdata;
                keep_reg[BYTES*i +: BYTES] <= s_axis_tkeep;
            end else if (place_reg == 0) begin
                data_reg[NARROW*i +: NARROW] <= 0;
                keep_reg[BYTES*i +: BYTES] <= 0;
            end
        if (!dense) keep_reg[0] <= 1'b0;
    end
    if (rst) begin
        valid_reg <= 1'b0;
        place_reg <= 0;
    end
end

assign m_axis_tdata = data_reg;
assign m_axis_tkeep = keep_reg;
assign m_axis_tvalid = valid_reg;
assign m_axis_tlast = last_reg;

`ifdef FORMAL
`include "axis_widen_props.v"
`endif

endmodule

`resetall
