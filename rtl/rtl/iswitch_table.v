// The Seg counters of iSwitch (§3.3): how far each sum is. No data pass through it. The rules are those of
// olaf-engine/src/blocks/by_index (`docs/design/030-iswitch.md`, "Places"): packet i belongs in cell i mod 2 SLOTS, a
// result stays until every member is known to hold it, and each vector of a member counts once.
//
// An operation takes two cycles: `look` reads the cells of `index`, and in the next cycle one of `meet`, `force`
// and `note` may act on them. The answers (`taken` .. `has_result`) are about the cell that was read, in that next
// cycle. `look` is ignored while the table is not `settled`.
//
// differs: the software takes any number for a vector (0 to 2047); here a number of VECTORS or more is
// `impossible`. A worker's numbers are below H. The software's slots may be any number; here they are a power of two.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module iswitch_table #(
    // Ports, as `iswitch_membership`.
    parameter PORTS = 4,
    // Places for packets, two cells each; a power of two.
    parameter SLOTS = 32,
    // Vectors that a member may send for one sum (iSwitch §4.1; 1: synchronous training alone).
    parameter VECTORS = PORTS,
    // Bits of the length of a datagram in bytes.
    parameter LENGTH = 12,
    // Bits of a port's number, of a cell's number, and of the pieces of a sum.
    parameter PORT = $clog2(PORTS),
    parameter CELL = $clog2(2*SLOTS),
    parameter PIECES = $clog2(PORTS+1)
) (
    input  wire              clk,
    input  wire              rst,

    // A generation begins: takes 2 SLOTS cycles, in which the table is not settled. H is the number of members.
    input  wire              begin_generation,
    input  wire [PORTS-1:0]  members,
    // The generation ends: packets without a result have none from now on.
    input  wire              end_generation,
    // SetH: for sums that begin from now on. `h_refused`: H is more than the members, or 0.
    input  wire              set_h,
    input  wire [10:0]       h,
    output wire              h_refused,

    output wire              settled,
    input  wire              look,
    input  wire [43:0]       index,

    // The cycle after `look`: a packet of a member is taken in. `index` and the member's fields have to stay.
    input  wire              meet,
    input  wire [PORT-1:0]   member,
    input  wire [10:0]       weight,
    input  wire [10:0]       missing,
    input  wire [10:0]       vector_number,
    input  wire              last,
    input  wire              marked,
    input  wire [LENGTH-1:0] length,
    // FBcast: the sum goes without the members that are missing.
    input  wire              force_out,
    // Ack: the member holds the results of all packets below `index`.
    input  wire              note,

    // What becomes of the packet: with `meet`, exactly one is high.
    output wire              opened,
    output wire              added,
    output wire              late,
    output wire              repeated,
    output wire              held,
    output wire              occupied,
    output wire              closed,
    output wire              too_early,
    output wire              impossible,
    output wire              wrong_size,
    output wire              mismatch,
    // With `meet`: the packet completes its sum. With `force_out`: the sum had begun, and goes.
    output wire              completes,
    // Packets whose sum is complete with this one; packets whose sums end with the generation.
    output wire [PIECES-1:0] summed,
    output wire [PIECES+CELL-1:0] given_up,

    // The cell has a result, which may be sent again; and the member does not say that it holds it.
    output wire              has_result,
    output wire              lacks_result,
    output wire [CELL-1:0]   cell_number,
    // Of the sum, this packet included where it is taken.
    output wire [15:0]       contributors,
    output wire              cell_last,
    output wire              cell_marked,
    output wire [LENGTH-1:0] cell_length
);

localparam CELLS = 2*SLOTS;
localparam SET = PORTS*VECTORS;
localparam RECORD = 2 + 44 + SET + 2*PIECES + 16 + 2 + LENGTH;

generate
    if (SLOTS < 1 || (SLOTS & (SLOTS - 1)) != 0 || VECTORS < 1 || CELL != $clog2(2*SLOTS)
            || PIECES != $clog2(PORTS+1)) begin : g_illegal
        iswitch_table_needs_a_power_of_two_of_slots illegal();
    end
endgenerate

// The cells. A record is written whole.
reg [RECORD-1:0]  cell_mem [0:CELLS-1];
// The fields by which a cell is found, once for each place that reads them in one cycle.
reg [45:0]        other_mem [0:CELLS-1];
reg [45:0]        first_mem [0:CELLS-1];
reg [43:0]        holds_reg [0:PORTS-1];
reg [PIECES-1:0]  threshold_reg = 0;
reg [PIECES-1:0]  members_count_reg = 0;
reg [43:0]        first_incomplete_reg = 0;
reg               closed_reg = 1;
// The cells have been cleared once.
reg               begun_reg = 0;
// Packets in sums that are not complete.
reg [PIECES+CELL-1:0] waiting_reg = 0;

// Clearing: one cell a cycle.
reg               clearing_reg = 0;
reg [CELL-1:0]    clear_reg = 0;

// Looking: the cell of the packet, and the other cell of its place.
reg [RECORD-1:0]  own_reg;
reg [45:0]        other_reg;
wire [CELL-1:0] own_at = index[CELL-1:0];
localparam [CELL-1:0] OTHER = SLOTS[CELL-1:0];

wire              own_used, own_final, own_last, own_marked;
wire [43:0]       own_index;
wire [SET-1:0]    own_set;
wire [PIECES-1:0] own_pieces, own_threshold;
wire [15:0]       own_contributors;
wire [LENGTH-1:0] own_length;
assign {own_used, own_final, own_index, own_set, own_pieces, own_threshold, own_contributors,
        own_last, own_marked, own_length} = own_reg;
wire              other_used, other_final;
wire [43:0]       other_index;
assign {other_used, other_final, other_index} = other_reg;

// The first packet without a result moves on, a packet a cycle.
wire              first_used, first_final;
wire [43:0]       first_index;
assign {first_used, first_final, first_index} = first_mem[first_incomplete_reg[CELL-1:0]];
wire moves_on = begun_reg && first_used && (first_index > first_incomplete_reg
    || (first_index == first_incomplete_reg && first_final));
assign settled = !clearing_reg && !moves_on;

// A packet is taken in. The order of these rules is that of `ByIndex::met`.
wire is_new = !own_used || own_index < index;
wire before_end = !closed_reg || index < first_incomplete_reg;
wire number_fits = vector_number < VECTORS;
wire first_window = index < {{43-CELL{1'b0}}, OTHER, 1'b0} >> 1;
wire [43:0] previous = index - {{44-CELL{1'b0}}, OTHER};
wire may_be_sent = first_window || (other_used && other_final && other_index == previous);

wire passes = number_fits && missing < weight && before_end && !(is_new && !may_be_sent);
// Before it sends a packet, a member holds all results up to the packet in the other cell.
wire [43:0] implied = first_window ? 44'd0 : previous + 1'b1;
wire [43:0] said = meet ? implied : index;
wire [43:0] known = said < first_incomplete_reg ? said : first_incomplete_reg;
wire notes = note || (meet && passes);
wire grows = notes && known > holds_reg[member];
wire [43:0] holds_after = grows ? known : holds_reg[member];

// Every member holds the older result of the cell.
wire [43:0] older = index - {{43-CELL{1'b0}}, OTHER, 1'b0};
wire oldest_window = index < {{43-CELL{1'b0}}, OTHER, 1'b0};
reg held_by_all;
integer m;
always @* begin
    held_by_all = 1;
    for (m = 0; m < PORTS; m = m + 1)
        if (members[m] && !((member == m[PORT-1:0] ? holds_after : holds_reg[m]) > older))
            held_by_all = 0;
end
wire gives_way = oldest_window || held_by_all;

reg [SET-1:0] bit_of_vector;
integer v;
always @* begin
    bit_of_vector = 0;
    for (v = 0; v < SET; v = v + 1)
        bit_of_vector[v] = v == {21'd0, vector_number} * PORTS + {{32-PORT{1'b0}}, member};
end
wire has = (own_set & bit_of_vector) != 0;
wire is_held = own_index > index || holds_after > index;

assign impossible = meet && !(number_fits && missing < weight);
assign closed     = meet && !impossible && !before_end;
assign too_early  = meet && !impossible && before_end && is_new && !may_be_sent;
assign occupied   = meet && passes && is_new && !gives_way;
assign opened     = meet && passes && is_new && gives_way;
wire older_cell   = meet && passes && !is_new;
assign held       = older_cell && is_held;
assign repeated   = older_cell && !is_held && has;
assign wrong_size = older_cell && !is_held && !has && own_length != length;
assign mismatch   = older_cell && !is_held && !has && own_length == length && own_last != last;
wire fits         = older_cell && !is_held && !has && own_length == length && own_last == last;
assign late       = fits && own_final;
assign added      = fits && !own_final;

wire [PIECES-1:0] pieces_after = opened ? 1 : added ? own_pieces + 1'b1 : own_pieces;
wire [PIECES-1:0] threshold_after = opened ? threshold_reg : own_threshold;
wire forces = force_out && own_used && own_index == index && !own_final && before_end;
wire taken = opened || added;
assign completes = (taken && pieces_after >= threshold_after) || forces;
assign summed = completes ? pieces_after : 0;
assign given_up = end_generation ? waiting_reg : 0;

assign has_result = own_used && own_index == index && own_final && before_end;
assign lacks_result = has_result && !(holds_reg[member] > index);
assign cell_number = own_at;
wire [15:0] more = {5'd0, weight} - {5'd0, missing};
assign contributors = opened ? more : added ? own_contributors + more : own_contributors;
assign cell_last = opened ? last : own_last;
assign cell_marked = opened ? marked : own_marked || (added && marked);
assign cell_length = opened ? length : own_length;

assign h_refused = set_h && (h == 0 || h > {{11-PIECES{1'b0}}, members_count_reg});

reg [PIECES-1:0] member_count;
integer k;
always @* begin
    member_count = 0;
    for (k = 0; k < PORTS; k = k + 1) member_count = member_count + {{PIECES-1{1'b0}}, members[k]};
end

wire writes = taken || forces;
wire [CELL-1:0] write_at = clearing_reg ? clear_reg : own_at;
wire [45:0] write_key = clearing_reg ? 46'd0 : {1'b1, completes, index};
wire [RECORD-1:0] write_record = {
    write_key,
    opened ? bit_of_vector : added ? own_set | bit_of_vector : own_set,
    pieces_after, threshold_after, contributors, cell_last, cell_marked, cell_length};

integer p;
always @(posedge clk) begin
    if (look) begin
        own_reg <= cell_mem[own_at];
        other_reg <= other_mem[own_at ^ OTHER];
    end
    if (writes || clearing_reg) begin
        cell_mem[write_at] <= write_record;
        other_mem[write_at] <= write_key;
        first_mem[write_at] <= write_key;
    end
    if (grows) holds_reg[member] <= holds_after;
    // What completes the first packet without a result needs no second look.
    if ((moves_on && !clearing_reg) || (completes && index == first_incomplete_reg))
        first_incomplete_reg <= first_incomplete_reg + 1'b1;
    if (set_h && !h_refused) threshold_reg <= h[PIECES-1:0];
    waiting_reg <= waiting_reg + {{PIECES+CELL-1{1'b0}}, taken} - {{CELL{1'b0}}, summed};
    if (end_generation) begin
        closed_reg <= 1'b1;
        waiting_reg <= 0;
    end
    if (clearing_reg) begin
        clear_reg <= clear_reg + 1'b1;
        clearing_reg <= clear_reg != {CELL{1'b1}};
        begun_reg <= begun_reg || clear_reg == {CELL{1'b1}};
        // In the cycle after the generation began, its members stand in `members`.
        threshold_reg <= member_count;
        members_count_reg <= member_count;
        first_incomplete_reg <= 0;
        for (p = 0; p < PORTS; p = p + 1) holds_reg[p] <= 0;
    end
    if (begin_generation) begin
        clearing_reg <= 1'b1;
        clear_reg <= 0;
        closed_reg <= 1'b0;
        waiting_reg <= 0;
    end
    if (rst) begin
        clearing_reg <= 1'b0;
        closed_reg <= 1'b1;
        begun_reg <= 1'b0;
        first_incomplete_reg <= 0;
        waiting_reg <= 0;
    end
end

`ifdef FORMAL
`include "iswitch_table_props.v"
`endif

endmodule

`resetall
