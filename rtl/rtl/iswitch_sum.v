// The data path of the accelerator (iSwitch §3.3, Figure 7): Addr Generator, Slicer, adders, Buffers and Output Module.
// It does the jobs of `iswitch_control` in their order, one beat a cycle, and never waits within a job: a job that
// sends begins when the output has room for all of its beats.
//
// A beat is read in one cycle, enters the adders in the next, and its sum is written two cycles later. The sum of a
// cell can be needed again earlier: it is then taken from the adders, or from the cycle behind them, in place of the
// memory. A job takes at least two cycles, which is as fast as an adder of two registers can add to its own sum.
//
// differs: the paper writes zeros into a buffer whose sum has left. Here the first packet of a sum overwrites
// the buffer, so a result can be sent again (docs/design/030-iswitch.md).

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_sum #(
    // 32-bit lanes of a beat; a power of two.
    parameter LANES = 8,
    // Beats of the longest datagram.
    parameter BEATS = 46,
    // Cells with a sum each.
    parameter CELLS = 64,
    // Ports of the switch.
    parameter PORTS = 4,
    // Beats that the output holds.
    parameter ROOM = 128,
    // Bits of a length in bytes, of a number of beats.
    parameter LENGTH = 12,
    parameter BEAT = 6,
    // Bits of a cell's number, of a number of beats of the output.
    parameter CELL = $clog2(CELLS),
    parameter CREDIT = $clog2(ROOM+1)
) (
    input  wire                clk,
    input  wire                rst,

    // A job: see `iswitch_control`.
    input  wire                job_valid,
    output wire                job_ready,
    input  wire [BEAT-1:0]     job_in,
    input  wire                job_store,
    input  wire                job_add,
    input  wire                job_send,
    input  wire                job_from_cell,
    input  wire [CELL-1:0]     job_cell,
    input  wire [LENGTH-1:0]   job_length,
    input  wire                job_control,
    input  wire [63:0]         job_seg,
    input  wire [PORTS-1:0]    job_to,
    input  wire                job_marked,

    // The input buffer: a beat that is taken is there in the next cycle.
    output wire                take,
    input  wire [LANES*32-1:0] beat,

    // To the output: a beat, with its kept bytes, whether it is the last, and {marked, control, receivers}.
    output wire                out_valid,
    output wire [LANES*32-1:0] out_data,
    output wire [LANES*4-1:0]  out_keep,
    output wire                out_last,
    output wire [PORTS+1:0]    out_user,
    // A beat has left the output: there is room for another one.
    input  wire                out_left
);

localparam BYTES = LANES*4;
localparam BYTE = $clog2(BYTES);
localparam WORDS = CELLS*BEATS;
localparam ADDRESS = $clog2(WORDS);

generate
    if (LANES < 4 || BYTES != (1 << BYTE) || ROOM < BEATS || CELLS < 2 || CELL != $clog2(CELLS)
            || CREDIT != $clog2(ROOM+1) || (1 << LENGTH) <= BEATS*BYTES) begin : g_illegal
        iswitch_sum_has_room_for_a_longest_datagram illegal();
    end
endgenerate

// The jobs. `steps` is the number of cycles of the next one.
wire [LENGTH-1:0] rounded = job_length + BYTES[LENGTH-1:0] - 1'b1;
wire [BEAT-1:0] job_out = job_send ? rounded[BYTE +: BEAT] : 0;
wire [BEAT-1:0] longer = job_in > job_out ? job_in : job_out;
wire [BEAT-1:0] steps = longer < 2 ? 2 : longer;
wire [BYTE-1:0] job_last_byte = job_length[BYTE-1:0] - 1'b1;

reg                busy_reg = 0;
reg [BEAT-1:0]     step_reg, steps_reg, in_reg, out_reg;
reg                store_reg, add_reg, from_cell_reg;
reg [ADDRESS-1:0]  address_reg;
// What the header and the last beat need: {last byte, control, Seg, receivers, marked}.
localparam ABOUT = BYTE + 1 + 64 + PORTS + 1;
reg [ABOUT-1:0]    about_reg;
reg [CREDIT-1:0]   credit_reg = ROOM[CREDIT-1:0];

wire last_step = step_reg == steps_reg - 1'b1;
wire has_room = credit_reg >= {{CREDIT-BEAT{1'b0}}, job_out};
wire starts = job_valid && (!busy_reg || last_step) && has_room;
assign job_ready = (!busy_reg || last_step) && has_room;

assign take = busy_reg && step_reg < in_reg;
wire sends = busy_reg && step_reg < out_reg;
// A packet of the cell's size comes in for what is stored.
wire stores = take && store_reg;

always @(posedge clk) begin
    step_reg <= step_reg + 1'b1;
    address_reg <= address_reg + 1'b1;
    if (last_step) busy_reg <= 1'b0;
    if (starts) begin
        busy_reg <= 1'b1;
        step_reg <= 0;
        {steps_reg, in_reg, out_reg} <= {steps, job_in, job_out};
        {store_reg, add_reg, from_cell_reg} <= {job_store, job_add, job_from_cell};
        address_reg <= {{ADDRESS-CELL{1'b0}}, job_cell} * BEATS[ADDRESS-1:0];
        about_reg <= {job_last_byte, job_control, job_seg, job_to, job_marked};
    end
    credit_reg <= credit_reg - (starts ? {{CREDIT-BEAT{1'b0}}, job_out} : 0)
        + {{CREDIT-1{1'b0}}, out_left};
    if (rst) begin
        busy_reg <= 1'b0;
        credit_reg <= ROOM[CREDIT-1:0];
    end
end

// 1: the beat and what the cell holds. Sums that are not in the memory yet are taken where they are.
reg [LANES*32-1:0] data_mem [0:WORDS-1];
reg [LANES*32-1:0] read_reg;
reg                stores_1 = 0, sends_1 = 0, add_1, from_cell_1, first_1, last_1;
reg                stores_2 = 0, sends_2 = 0, first_2, last_2;
reg                stores_3 = 0, sends_3 = 0, first_3, last_3;
reg                stores_4 = 0;
reg [ADDRESS-1:0]  address_1, address_2, address_3, address_4;
reg [ABOUT-1:0]    about_1, about_2, about_3;
reg [LANES*32-1:0] data_4;
wire [LANES*32-1:0] sum;

wire [LANES*32-1:0] stored = stores_3 && address_3 == address_1 ? sum :
    stores_4 && address_4 == address_1 ? data_4 : read_reg;
// The Seg is not a number: its two lanes pass.
wire [LANES-1:0] adds = add_1 ? {{LANES-2{1'b1}}, {2{!first_1}}} : 0;

// The steps 3 and 6 of the adders have registers: see `fp_add`.
/* verilator lint_off PINCONNECTEMPTY */
fp32_lanes #(.LANES(LANES), .REGISTERS(6'b100100)) adders (
    .clk(clk), .enable(1'b1), .add(adds), .a(from_cell_1 ? stored : beat), .b(stored), .sum(sum),
    .not_finite()
);
/* verilator lint_on PINCONNECTEMPTY */

always @(posedge clk) begin
    read_reg <= data_mem[address_reg];
    {stores_1, sends_1} <= {stores, sends};
    {add_1, from_cell_1, address_1} <= {add_reg && stores, from_cell_reg, address_reg};
    {first_1, last_1, about_1} <= {step_reg == 0, step_reg == out_reg - 1'b1, about_reg};
    {stores_2, sends_2, first_2, last_2} <= {stores_1, sends_1, first_1, last_1};
    {stores_3, sends_3, first_3, last_3} <= {stores_2, sends_2, first_2, last_2};
    {address_2, about_2, address_3, about_3} <= {address_1, about_1, address_2, about_2};
    {stores_4, address_4, data_4} <= {stores_3, address_3, sum};
    if (stores_3) data_mem[address_3] <= sum;
    if (rst) begin
        {stores_1, sends_1, stores_2, sends_2} <= 4'd0;
        {stores_3, sends_3, stores_4} <= 3'd0;
    end
end

// 3: the Output Module prepends the header.
wire [BYTE-1:0]    last_byte;
wire               control_3, marked_3;
wire [63:0]        seg_3;
wire [PORTS-1:0]   to_3;
assign {last_byte, control_3, seg_3, to_3, marked_3} = about_3;
wire [63:0] header = {seg_3[7:0], seg_3[15:8], seg_3[23:16], seg_3[31:24],
                      seg_3[39:32], seg_3[47:40], seg_3[55:48], seg_3[63:56]};

reg [BYTES-1:0] keep;
integer i;
always @* begin
    for (i = 0; i < BYTES; i = i + 1) keep[i] = !last_3 || i[BYTE-1:0] <= last_byte;
end

assign out_valid = sends_3;
assign out_data = {sum[LANES*32-1:64], first_3 && !control_3 ? header : sum[63:0]};
assign out_keep = keep;
assign out_last = last_3;
assign out_user = {marked_3, control_3, to_3};

wire unused = &{1'b0, rounded};

`ifdef FORMAL
`include "iswitch_sum_props.v"
`endif

endmodule

`resetall
