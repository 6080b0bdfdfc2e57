// Who takes part: the part of iSwitch's membership table (Figure 9) that the data path needs, and when a generation
// begins and ends. The rules are those of olaf-engine/src/switch/iswitch/membership.rs, for one job whose members are
// the ports of this switch.
//
// A generation begins when workers of the whole job wait in the lobby. It ends with a Leave, a Reset, a Halt, a new
// life of a member, or packets that differ in size (`docs/design/030-iswitch.md`, "Generations").
//
// differs: the software knows a life by its session, wherever it is; here a session is looked for at its own
// port. The software ends a generation also when a worker is silent: here the control plane, which has the clock, sends
// a Halt or a Reset.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_membership #(
    // Ports, each with one worker or one lower switch.
    parameter PORTS = 4,
    // Bits of a port's number.
    parameter PORT = $clog2(PORTS)
) (
    input  wire              clk,
    input  wire              rst,
    // Number of the first generation: the low byte of the software switch's life.
    input  wire [7:0]        epoch,

    // The message: its sender and its fields, steady while it is worked on.
    input  wire [PORT-1:0]   port,
    input  wire [7:0]        generation,
    input  wire [31:0]       job,
    input  wire [31:0]       session,
    input  wire              from_switch,
    input  wire [31:0]       rank,
    input  wire [10:0]       workers,
    input  wire [10:0]       contributors,
    input  wire [31:0]       packet_floats,
    input  wire [31:0]       operations,

    // A Join takes two steps, because the end of a generation may begin the next one between them.
    input  wire              join_first,
    input  wire              join_second,
    // The Join is of another job, of another number of workers, or finds no room.
    output wire              join_refused,
    input  wire              leave,
    // The sender is neither a member nor in the lobby: the Leave does nothing.
    output wire              leave_refused,
    // Reset, Halt, or packets that do not fit each other.
    input  wire              end_generation,

    // The sender is a member of that generation; and it has not left.
    output wire              seated,
    output wire              left,
    // Workers behind the sender, and whether it is a switch.
    output wire [10:0]       weight,
    output wire              is_switch,

    // All that belong to the next generation are here, and none is open. `begin_generation` seats them.
    output wire              complete,
    input  wire              begin_generation,
    // The generation ends in this cycle.
    output wire              ends,

    // The generation: its number, its members, all workers of the job, floats of a packet.
    output wire [7:0]        number,
    output wire [PORTS-1:0]  members,
    output wire [10:0]       all_workers,
    output wire [31:0]       most_floats,
    output wire              open
);

generate
    if (PORTS < 2 || PORTS > 64 || PORT != $clog2(PORTS)) begin : g_illegal
        iswitch_membership_has_two_to_64_ports illegal();
    end
endgenerate

localparam [31:0] ANY = 32'hffffffff;

reg              has_job_reg = 0;
reg [31:0]       job_reg;
reg [10:0]       workers_reg;

// The current generation, open or closed.
reg [PORTS-1:0]  member_reg = 0;
reg [PORTS-1:0]  left_reg = 0;
reg [PORTS-1:0]  switch_reg;
reg [31:0]       session_reg [0:PORTS-1];
reg [10:0]       weight_reg [0:PORTS-1];
reg [31:0]       floats_reg;
reg [7:0]        number_reg = 0;
reg              open_reg = 0;
reg [7:0]        next_reg = 0;

// The lobby.
reg [PORTS-1:0]  waits_reg = 0;
reg [PORTS-1:0]  waiting_switch_reg;
reg [PORTS-1:0]  has_rank_reg;
reg [31:0]       waiting_session_reg [0:PORTS-1];
reg [10:0]       waiting_weight_reg [0:PORTS-1];
reg [10:0]       waiting_rank_reg [0:PORTS-1];
reg [31:0]       waiting_floats_reg [0:PORTS-1];

// What the lobby holds: all of it, and without the sender.
reg [17:0]       here, others;
reg [31:0]       least_floats;
reg              rank_taken;
integer i;
always @* begin
    here = 0;
    others = 0;
    least_floats = ANY;
    rank_taken = 0;
    for (i = 0; i < PORTS; i = i + 1)
        if (waits_reg[i]) begin
            here = here + {7'd0, waiting_weight_reg[i]};
            if (waiting_floats_reg[i] < least_floats) least_floats = waiting_floats_reg[i];
            if (port != i[PORT-1:0]) begin
                others = others + {7'd0, waiting_weight_reg[i]};
                if (has_rank_reg[i] && waiting_rank_reg[i] == rank[10:0]) rank_taken = 1;
            end
        end
end

// A Join, first: does it belong here, and does it end the open generation?
wire fits = !has_job_reg || (job == job_reg && workers == workers_reg);
wire in_open = open_reg && member_reg[port];
wire same_life = in_open && session_reg[port] == session;
// The answer to its Join was lost: nothing changes.
wire is_in = same_life && (operations == ANY || generation != number_reg);
wire join_ends = join_first && fits && in_open && !is_in;

// A Join, second: into the lobby.
wire has_rank = rank < {21'd0, workers} && !from_switch;
wire awaits_rank = has_rank && rank_taken;
wire full = others + {7'd0, contributors} > {7'd0, workers};
wire enters = join_second && fits && !is_in && !awaits_rank && !full;
wire other_life = waits_reg[port] && waiting_session_reg[port] != session;
// An earlier life in the lobby is over, also where the new one has to wait outside.
wire clears = join_second && fits && !is_in && other_life;
assign join_refused = join_second && (!fits || (!is_in && !awaits_rank && full));

// A Leave.
wire job_is_here = has_job_reg && job == job_reg;
wire leaves_lobby = waits_reg[port] && waiting_session_reg[port] == session && job_is_here;
wire leaves_members = member_reg[port] && session_reg[port] == session && job_is_here;
assign leave_refused = leave && !leaves_lobby && !leaves_members;

assign ends = open_reg && (join_ends || (leave && leaves_members) || end_generation);
assign complete = has_job_reg && !open_reg && here == {7'd0, workers_reg};
// Nobody is left: the next Join may be of another job.
wire deserted = has_job_reg && !open_reg && waits_reg == 0 && (member_reg & ~left_reg) == 0
    && !join_first && !join_second;

assign seated = member_reg[port] && generation == number_reg;
assign left = left_reg[port];
assign weight = weight_reg[port];
assign is_switch = switch_reg[port];
assign number = number_reg;
assign members = member_reg;
assign all_workers = workers_reg;
assign most_floats = floats_reg;
assign open = open_reg;

integer p;
always @(posedge clk) begin
    if (ends) open_reg <= 1'b0;
    if (join_first && !has_job_reg) begin
        has_job_reg <= 1'b1;
        job_reg <= job;
        workers_reg <= workers;
    end
    if (clears) waits_reg[port] <= 1'b0;
    if (enters) begin
        waits_reg[port] <= 1'b1;
        waiting_switch_reg[port] <= from_switch;
        waiting_session_reg[port] <= session;
        waiting_weight_reg[port] <= contributors;
        waiting_floats_reg[port] <= packet_floats;
        has_rank_reg[port] <= has_rank;
        waiting_rank_reg[port] <= rank[10:0];
    end
    if (leave && leaves_lobby) waits_reg[port] <= 1'b0;
    if (leave && leaves_members) left_reg[port] <= 1'b1;
    if (begin_generation) begin
        open_reg <= 1'b1;
        number_reg <= next_reg;
        next_reg <= next_reg + 1'b1;
        member_reg <= waits_reg;
        waits_reg <= 0;
        left_reg <= 0;
        switch_reg <= waiting_switch_reg;
        floats_reg <= least_floats;
        for (p = 0; p < PORTS; p = p + 1) begin
            session_reg[p] <= waiting_session_reg[p];
            weight_reg[p] <= waiting_weight_reg[p];
        end
    end
    if (deserted) begin
        has_job_reg <= 1'b0;
        member_reg <= 0;
    end
    if (rst) begin
        has_job_reg <= 1'b0;
        open_reg <= 1'b0;
        member_reg <= 0;
        waits_reg <= 0;
        left_reg <= 0;
        next_reg <= epoch;
    end
end

`ifdef FORMAL
`include "iswitch_membership_props.v"
`endif

endmodule

`resetall
