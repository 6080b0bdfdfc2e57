// The decisions of the accelerator: what becomes of each datagram, and which job the data path gets for it. No floats
// pass through it.
//
// A data packet takes two cycles: one to read its Seg counter, one to decide. A control message takes two
// and, for FBcast and Help, two for each packet that it names. Every message is also passed on, untouched, to the
// control plane, which answers it.
//
// Help: a result that is here is sent again to the worker that lacks it. The rest is the control plane's
// (iSwitch §3.3 leaves lost packets to the workers).

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_control #(
    // Ports, places, vectors, bits of a length in bytes: see `iswitch_table`.
    parameter PORTS = 4,
    parameter SLOTS = 32,
    parameter VECTORS = PORTS,
    parameter LENGTH = 12,
    // Bits of a number of beats.
    parameter BEAT = 6,
    // Bits of a port's number, of a cell's number, and of the pieces of a sum.
    parameter PORT = $clog2(PORTS),
    parameter CELL = $clog2(2*SLOTS),
    parameter PIECES = $clog2(PORTS+1)
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [7:0]        epoch,
    // Addresses have to be proved: a Join counts only if it is confirmed.
    input  wire              proofs,

    // The oldest datagram that waits: its first 32 bytes, its length, its beats in the input buffer.
    input  wire              s_valid,
    output wire              s_ready,
    input  wire [255:0]      s_head,
    input  wire [LENGTH-1:0] s_length,
    input  wire [BEAT-1:0]   s_beats,
    input  wire [PORT-1:0]   s_port,
    // Of 40 or 52 bytes: the last word is not 0.
    input  wire              s_has_number,
    // A control message, otherwise a data packet.
    input  wire              s_control,
    // The control plane sent it: where it is a Join, the sender's address is proved.
    input  wire              s_confirmed,
    // The path was congested (ECN).
    input  wire              s_marked,
    // Longer than the buffer of a packet: its end is not there.
    input  wire              s_too_long,

    // A job of the data path: it takes `job_in` beats from the input buffer, and does the rest beside.
    output wire              job_valid,
    input  wire              job_ready,
    output wire [BEAT-1:0]   job_in,
    // The beats begin a sum in the cell, or are added to it.
    output wire              job_store,
    output wire              job_add,
    // A datagram leaves: beats of the cell (where nothing comes in for it), of the sum, or of the input.
    output wire              job_send,
    output wire              job_from_cell,
    output wire [CELL-1:0]   job_cell,
    // Of what is stored or leaves.
    output wire [LENGTH-1:0] job_length,
    // A data packet gets this Seg. A control message keeps its bytes.
    output wire              job_control,
    output wire [63:0]       job_seg,
    output wire [PORTS-1:0]  job_to,
    output wire              job_marked,

    // The fate of a datagram: with `decides`, exactly one is high. From bit 0: taken into a sum, late, repeated, held,
    // occupied, closed, too early, impossible, wrong size, mismatch, malformed, unknown generation, not a member;
    // then the eight verbs from Join to Ack.
    output wire              decides,
    output wire [20:0]       fate,
    // What else is counted.
    output wire [PIECES-1:0] summed,
    output wire [PIECES+CELL-1:0] given_up,
    output wire [PIECES-1:0] results,
    output wire              result_again,
    output wire              forced,
    output wire              began,
    output wire              ended,
    output wire              join_refused,
    output wire              leave_refused,
    output wire              h_refused,
    output wire              message_of_unknown_generation,
    output wire              message_of_no_member
);

localparam [2:0] LOOK = 0, DECIDE = 1, JOIN = 2, NAMED_LOOK = 3, NAMED_DECIDE = 4;
reg [2:0] state_reg = LOOK;
wire looking = state_reg == LOOK;
wire deciding = state_reg == DECIDE;
wire joining = state_reg == JOIN;
wire naming = state_reg == NAMED_LOOK;
wire named = state_reg == NAMED_DECIDE;

// What the datagram says. A Seg is in network byte order.
wire [63:0] seg = {s_head[7:0], s_head[15:8], s_head[23:16], s_head[31:24],
                   s_head[39:32], s_head[47:40], s_head[55:48], s_head[63:56]};
wire        well_formed, from_switch;
wire [7:0]  verb, message_generation;
wire [31:0] message_job, session, rank, packet_floats, operations;
wire [10:0] workers, contributors_joining, h;
wire [43:0] message_index;
wire [63:0] mask;

iswitch_message #(.LENGTH(LENGTH)) message (
    .head(s_head), .length(s_length), .has_number(s_has_number), .well_formed(well_formed), .verb(verb),
    .generation(message_generation), .job(message_job), .session(session),
    .from_switch(from_switch), .rank(rank), .workers(workers),
    .contributors(contributors_joining), .packet_floats(packet_floats), .operations(operations),
    .h(h), .index(message_index), .mask(mask)
);

wire is_message = s_control && well_formed && !s_too_long;
// differs: the software compares the Join's number with the address. Here the control plane does, and sends the Join again.
wire does_join = is_message && verb[0] && (!proofs || s_confirmed);
wire does_leave = is_message && verb[1];
wire does_reset = is_message && verb[2];
wire does_set_h = is_message && verb[3];
wire does_fbcast = is_message && verb[4];
wire does_help = is_message && verb[5];
wire does_halt = is_message && verb[6];
wire does_ack = is_message && verb[7];

// Who sent it.
wire              seated, left, is_switch, complete, ends, open;
wire [10:0]       weight, all_workers;
wire [7:0]        number;
wire [PORTS-1:0]  members;
wire [31:0]       most_floats;
wire              begins = complete && (looking || joining);
wire              end_generation;

iswitch_membership #(.PORTS(PORTS)) membership (
    .clk(clk), .rst(rst), .epoch(epoch),
    .port(s_port), .generation(s_control ? message_generation : seg[63:56]),
    .job(message_job), .session(session), .from_switch(from_switch), .rank(rank),
    .workers(workers), .contributors(contributors_joining), .packet_floats(packet_floats),
    .operations(operations),
    .join_first(deciding && does_join), .join_second(joining && !complete),
    .join_refused(join_refused),
    .leave(deciding && does_leave), .leave_refused(leave_refused),
    .end_generation(end_generation),
    .seated(seated), .left(left), .weight(weight), .is_switch(is_switch),
    .complete(complete), .begin_generation(begins), .ends(ends),
    .number(number), .members(members), .all_workers(all_workers), .most_floats(most_floats),
    .open(open)
);

// A data packet that the table meets.
localparam [LENGTH-1:0] SHORTEST = 12;
wire [LENGTH-1:0] floats_bytes = s_length - 8;
// The length of a packet that was cut off has at least its last two bits.
wire has_floats = (s_length >= SHORTEST || s_too_long) && s_length[1:0] == 0;
wire is_data = !s_control && has_floats;
wire is_too_long = s_too_long || {{34-LENGTH{1'b0}}, floats_bytes} > {most_floats, 2'b00};
wire is_of_member = seated && !left;
wire meets = deciding && is_data && is_of_member && !is_too_long;
// A message about the generation of its sender.
wire is_about = is_message && !verb[0] && !does_leave;
wire acts = deciding && is_about && is_of_member;

// The packets that an FBcast or a Help names, one after the other.
reg [63:0]  named_reg;
reg [5:0]   lowest;
integer i;
always @* begin
    lowest = 0;
    for (i = 63; i >= 0; i = i - 1)
        if (named_reg[i]) lowest = i[5:0];
end
wire [43:0] named_index = message_index + {38'd0, lowest};

wire              settled, completes, has_result, lacks_result, cell_last, cell_marked;
wire              opened, added, late, repeated, held, occupied, closed, too_early, impossible;
wire              wrong_size, mismatch;
wire [CELL-1:0]   cell_number;
wire [15:0]       contributors;
wire [LENGTH-1:0] cell_length;

// The data path takes another job in the cycle in which it begins the one before.
reg  job_valid_reg = 0;
wire job_free = !job_valid_reg || job_ready;
wire may_look = settled && job_free && !complete;
wire looks = looking && s_valid && may_look;
wire looks_named = naming && named_reg != 0 && may_look;

assign end_generation = (acts && (does_reset || does_halt)) || wrong_size || mismatch;

iswitch_table #(
    .PORTS(PORTS), .SLOTS(SLOTS), .VECTORS(VECTORS), .LENGTH(LENGTH)
) sums (
    .clk(clk), .rst(rst),
    .begin_generation(begins), .members(members), .end_generation(ends),
    .set_h(acts && does_set_h), .h(h), .h_refused(h_refused),
    .settled(settled), .look(looks || looks_named),
    .index(!s_control ? seg[43:0] : does_ack ? message_index : named_index),
    .meet(meets), .member(s_port), .weight(weight),
    .missing(is_switch ? seg[54:44] : 11'd0), .vector_number(is_switch ? 11'd0 : seg[54:44]),
    .last(seg[55]), .marked(s_marked), .length(s_length),
    .force_out(named && does_fbcast), .note(acts && does_ack),
    .opened(opened), .added(added), .late(late), .repeated(repeated), .held(held),
    .occupied(occupied), .closed(closed), .too_early(too_early), .impossible(impossible),
    .wrong_size(wrong_size), .mismatch(mismatch), .completes(completes),
    .summed(summed), .given_up(given_up),
    .has_result(has_result), .lacks_result(lacks_result),
    .cell_number(cell_number), .contributors(contributors), .cell_last(cell_last),
    .cell_marked(cell_marked), .cell_length(cell_length)
);

wire taken = opened || added;
wire sends_again = ((late || repeated) && has_result)
    || (named && (does_fbcast ? has_result : lacks_result));
wire sends_sum = completes && (taken || named);
wire passes = deciding && s_control && !s_too_long && s_length != 0;

assign decides = deciding;
assign fate = {
    {8{deciding && is_message}} & verb,
    deciding && is_data && seated && left,
    deciding && is_data && !seated,
    deciding && (s_control ? !is_message : !has_floats || (is_of_member && is_too_long)),
    mismatch, wrong_size, impossible, too_early, closed, occupied, held, repeated, late, taken};
assign message_of_unknown_generation = deciding && is_about && !seated;
assign message_of_no_member = deciding && is_about && seated && left;
assign forced = named && does_fbcast && completes;
assign began = begins;
assign ended = ends;
assign result_again = sends_again;

reg [PIECES-1:0] receivers;
integer k;
always @* begin
    receivers = 0;
    for (k = 0; k < PORTS; k = k + 1) receivers = receivers + {{PIECES-1{1'b0}}, members[k]};
end
assign results = sends_sum ? receivers : 0;

// The job. What comes in for a message that names packets has gone with its first job.
wire [15:0] workers_wide = {5'd0, all_workers};
wire [10:0] missing_out = contributors >= workers_wide ? 11'd0
    : all_workers - contributors[10:0];
wire [63:0] seg_out = {number, cell_last, missing_out, named ? named_index : seg[43:0]};
wire [PORTS-1:0] sender = {{PORTS-1{1'b0}}, 1'b1} << s_port;
wire pushes = deciding || sends_again || (named && sends_sum);

reg [BEAT-1:0]   in_reg;
reg              store_reg, add_reg, send_reg, from_cell_reg, control_reg, marked_reg;
reg [CELL-1:0]   cell_reg;
reg [LENGTH-1:0] length_reg;
reg [63:0]       seg_reg;
reg [PORTS-1:0]  to_reg;

assign job_valid = job_valid_reg;
assign {job_in, job_store, job_add, job_send, job_from_cell, job_cell, job_length} =
    {in_reg, store_reg, add_reg, send_reg, from_cell_reg, cell_reg, length_reg};
assign {job_control, job_seg, job_to, job_marked} = {control_reg, seg_reg, to_reg, marked_reg};

// A named packet without a result needs no job, a Join one more step.
wire has_names = acts && (does_fbcast || does_help);
wire last_named = naming && named_reg == 0;
assign s_ready = (deciding && !does_join && !has_names) || (joining && !complete) || last_named;

always @(posedge clk) begin
    if (job_ready) job_valid_reg <= 1'b0;
    if (pushes) begin
        job_valid_reg <= 1'b1;
        in_reg <= deciding ? s_beats : 0;
        store_reg <= taken;
        add_reg <= added;
        send_reg <= passes || sends_sum || sends_again;
        from_cell_reg <= sends_again || named;
        cell_reg <= cell_number;
        length_reg <= passes ? s_length : cell_length;
        control_reg <= passes;
        seg_reg <= seg_out;
        to_reg <= passes || sends_again ? sender : members;
        marked_reg <= passes ? s_marked : cell_marked;
    end
    case (state_reg)
        LOOK: if (looks) state_reg <= DECIDE;
        DECIDE: begin
            state_reg <= does_join ? JOIN : has_names ? NAMED_LOOK : LOOK;
            named_reg <= mask;
        end
        JOIN: if (!complete) state_reg <= LOOK;
        NAMED_LOOK: if (looks_named) state_reg <= NAMED_DECIDE;
            else if (last_named) state_reg <= LOOK;
        default: begin
            state_reg <= NAMED_LOOK;
            named_reg[lowest] <= 1'b0;
        end
    endcase
    if (rst) begin
        state_reg <= LOOK;
        job_valid_reg <= 1'b0;
    end
end

wire unused = &{1'b0, open};

`ifdef FORMAL
`include "iswitch_control_props.v"
`endif

endmodule

`resetall
