// The input buffer of the accelerator, with iSwitch's Separator and Seg Decoder in front (§3.3, Figure 7): a whole
// datagram is stored, and only then offered, with its first 32 bytes and its length. Size and last beat of a
// packet decide whether it may be summed, so no beat may be added before.
//
// Datagrams longer than BEATS beats are cut off and said to be too long.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_frames #(
    // 32-bit lanes of a beat; at least 8.
    parameter LANES = 8,
    // Beats of the longest datagram; at least 2.
    parameter BEATS = 46,
    // Beats and datagrams that the buffer holds: powers of two. More than BEATS beats.
    parameter DEPTH = 128,
    parameter FRAMES = 16,
    // Bits of tuser: it is kept with the datagram as it was in the last beat.
    parameter USER = 4,
    // Bits of a length in bytes, of a number of beats.
    parameter LENGTH = 12,
    parameter BEAT = 6
) (
    input  wire                clk,
    input  wire                rst,

    input  wire [LANES*32-1:0] s_axis_tdata,
    input  wire [LANES*4-1:0]  s_axis_tkeep,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire                s_axis_tlast,
    input  wire [USER-1:0]     s_axis_tuser,

    // The oldest datagram that waits for its decision.
    output wire                frame_valid,
    input  wire                frame_ready,
    output wire [255:0]        frame_head,
    output wire [LENGTH-1:0]   frame_length,
    output wire [BEAT-1:0]     frame_beats,
    output wire                frame_too_long,
    // Of a datagram of 40 or 52 bytes: its last word is not 0 (see `iswitch_message`).
    output wire                frame_has_number,
    output wire [USER-1:0]     frame_user,

    // The oldest beat is taken: it is at `beat` in the next cycle. Beats are taken only of datagrams that were offered.
    input  wire                take,
    output wire [LANES*32-1:0] beat
);

localparam ADDRESS = $clog2(DEPTH);
localparam FRAME = $clog2(FRAMES);
localparam BYTES = LANES*4;
localparam [ADDRESS:0] ALL = DEPTH[ADDRESS:0];
localparam [FRAME:0] ALL_FRAMES = FRAMES[FRAME:0];
localparam [BEAT-1:0] LONGEST = BEATS[BEAT-1:0];

generate
    if (LANES < 8 || BEATS < 2 || DEPTH <= BEATS || DEPTH != (1 << ADDRESS) || FRAMES < 2
            || FRAMES != (1 << FRAME) || (1 << LENGTH) <= BEATS*BYTES || (1 << BEAT) <= BEATS
            || LENGTH < 7) begin : g_illegal
        iswitch_frames_holds_a_longest_datagram illegal();
    end
endgenerate

reg [LANES*32-1:0] data_mem [0:DEPTH-1];
reg [LANES*32-1:0] beat_reg;
reg [ADDRESS-1:0]  write_reg = 0, read_reg = 0;
reg [ADDRESS:0]    used_reg = 0;

localparam DESCRIPTION = 256 + LENGTH + BEAT + 2 + USER;
reg [DESCRIPTION-1:0] frame_mem [0:FRAMES-1];
reg [FRAME-1:0]    frame_write_reg = 0, frame_read_reg = 0;
reg [FRAME:0]      frames_reg = 0;

// The datagram that comes in.
reg [BEAT-1:0]     stored_reg = 0;
reg                too_long_reg = 0;
reg [255:0]        head_reg;

wire first = stored_reg == 0;
wire fits = stored_reg != LONGEST;
assign s_axis_tready = used_reg != ALL && frames_reg != ALL_FRAMES;
wire comes = s_axis_tvalid && s_axis_tready;
wire stores = comes && fits;
wire ends = comes && s_axis_tlast;

// Bytes of the last beat. Bytes that are kept come first (AXI4-Stream without holes).
reg [LENGTH-1:0] kept;
integer i;
always @* begin
    kept = 0;
    for (i = 0; i < BYTES; i = i + 1)
        if (s_axis_tkeep[i]) kept = i[LENGTH-1:0] + 1'b1;
end
// The last word of 40 bytes is word 9, that of 52 bytes word 12.
localparam [LENGTH-1:0] KEPT_OF_40 = 40 % BYTES;
wire has_number = kept == KEPT_OF_40 ? s_axis_tdata[32*(9 % LANES) +: 32] != 0
    : s_axis_tdata[32*(12 % LANES) +: 32] != 0;
wire [LENGTH-1:0] before_last = {{LENGTH-BEAT{1'b0}}, stored_reg} * BYTES[LENGTH-1:0];

wire [DESCRIPTION-1:0] description = {
    first ? s_axis_tdata[255:0] : head_reg,
    before_last + kept,
    fits ? stored_reg + 1'b1 : stored_reg,
    has_number,
    too_long_reg || !fits,
    s_axis_tuser};
assign {frame_head, frame_length, frame_beats, frame_has_number, frame_too_long, frame_user} =
    frame_mem[frame_read_reg];
assign frame_valid = frames_reg != 0;
wire leaves = frame_valid && frame_ready;
assign beat = beat_reg;

always @(posedge clk) begin
    if (stores) data_mem[write_reg] <= s_axis_tdata;
    if (take) beat_reg <= data_mem[read_reg];
    if (ends) frame_mem[frame_write_reg] <= description;
    if (stores) write_reg <= write_reg + 1'b1;
    if (take) read_reg <= read_reg + 1'b1;
    used_reg <= used_reg + {{ADDRESS{1'b0}}, stores} - {{ADDRESS{1'b0}}, take};
    if (ends) frame_write_reg <= frame_write_reg + 1'b1;
    if (leaves) frame_read_reg <= frame_read_reg + 1'b1;
    frames_reg <= frames_reg + {{FRAME{1'b0}}, ends} - {{FRAME{1'b0}}, leaves};
    if (comes) begin
        if (first) head_reg <= s_axis_tdata[255:0];
        stored_reg <= s_axis_tlast ? 0 : fits ? stored_reg + 1'b1 : stored_reg;
        too_long_reg <= !s_axis_tlast && !fits;
    end
    if (rst) begin
        write_reg <= 0;
        read_reg <= 0;
        used_reg <= 0;
        frame_write_reg <= 0;
        frame_read_reg <= 0;
        frames_reg <= 0;
        stored_reg <= 0;
        too_long_reg <= 0;
    end
end

`ifdef FORMAL
`include "iswitch_frames_props.v"
`endif

endmodule

`resetall
