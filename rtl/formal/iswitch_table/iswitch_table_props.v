// What the Seg counters promise. This file is read inside `iswitch_table`. The properties are proved by
// induction, for a table of two cells.

// The one who asks looks first, and changes nothing between looking and acting.
reg looked = 0;
reg [43:0] looked_index;
reg [PORTS-1:0] past_members;
reg past_begin = 0;
always @(posedge clk) begin
    looked <= look && settled && !rst && !begin_generation;
    looked_index <= index;
    past_members <= members;
    past_begin <= begin_generation;
end
always @* begin
    if (look) assume (settled);
    if (meet || force_out || note) begin
        assume (looked && index == looked_index && !begin_generation && !look);
        // There is a member only when a generation has begun.
        assume (begun_reg);
    end
    // 2^44 packets are 23 days at 100 Gbit/s: a generation has fewer.
    assume (index < {44{1'b1}} - 8);
    assume (meet + force_out + note <= 1);
    if (set_h) assume (begun_reg && !clearing_reg && !meet && !begin_generation);
    if (end_generation) assume (!begin_generation && !clearing_reg && !force_out);
    // A membership is not empty, and changes only when a generation begins.
    assume (members != 0);
    if (!past_begin) assume (members == past_members);
    assume (member < PORTS && members[member]);
end

// A packet has exactly one fate.
wire [3:0] fates = opened + added + late + repeated + held + occupied + closed + too_early
    + impossible + wrong_size + mismatch;
always @* one_fate: assert (fates == meet);

// The count never passes H.
always @* if (taken) below_h: assert (pieces_after <= threshold_after);
always @* if (taken && !completes) open_below_h: assert (pieces_after < threshold_after);

function [PIECES-1:0] ones(input [SET-1:0] set);
    integer n;
    begin
        ones = 0;
        for (n = 0; n < SET; n = n + 1) ones = ones + set[n];
    end
endfunction

// Each cell: what its record says.
reg [PIECES+CELL-1:0] open_pieces;
genvar c;
generate
    for (c = 0; c < CELLS; c = c + 1) begin : g_cell
        wire              used, done, has_last, has_marked;
        wire [43:0]       at;
        wire [SET-1:0]    set;
        wire [PIECES-1:0] pieces, threshold;
        wire [15:0]       from;
        wire [LENGTH-1:0] bytes;
        assign {used, done, at, set, pieces, threshold, from, has_last, has_marked, bytes} =
            cell_mem[c];
        always @* begin
            if (begun_reg && used) begin
                assert (pieces <= threshold && threshold <= PORTS && pieces != 0);
                if (!done) assert (pieces < threshold);
                // Each vector counts once: the count is that of the set.
                assert (pieces == ones(set));
                assert (at[CELL-1:0] == c);
                assert (at < {44{1'b1}} - 8);
            end
            if (clearing_reg && clear_reg > c) assert (!used);
            // A packet below the first one without a result has left an index in its cell.
            if (begun_reg && !clearing_reg) begin
                if (used && !done) assert (at >= first_incomplete_reg);
                if (first_incomplete_reg > c) assert (used && at + CELLS >= first_incomplete_reg);
            end
            if (begun_reg || (clearing_reg && clear_reg > c))
                assert (other_mem[c][45] == used && first_mem[c][45] == used);
            if (begun_reg && used)
                assert (other_mem[c] == {used, done, at} && first_mem[c] == {used, done, at});
        end
        wire [PIECES-1:0] waits = used && !done ? pieces : 0;
    end
endgenerate
always @* begin
    if (looked && begun_reg && index == looked_index) begin
        read_own: assert (own_reg == cell_mem[own_at]);
        assert (other_reg == other_mem[own_at ^ OTHER]);
    end
    // No packet is lost between taken and summed: those that wait are those of the open cells.
    if (begun_reg && !clearing_reg && !closed_reg)
        none_lost: assert (waiting_reg == g_cell[0].waits + g_cell[1].waits);
    if (closed_reg || clearing_reg) assert (waiting_reg == 0);
    if (clearing_reg && clear_reg != 0) assert (first_incomplete_reg == 0);
    if (!begun_reg && !clearing_reg) assert (closed_reg);
    if (begun_reg && !clearing_reg) begin
        h_fits: assert (threshold_reg != 0 && threshold_reg <= PORTS);
        assert (members_count_reg != 0 && members_count_reg <= PORTS);
    end
end

// Nobody holds a result that does not exist.
integer q;
always @* if (begun_reg && (!clearing_reg || clear_reg != 0))
    for (q = 0; q < PORTS; q = q + 1) assert (holds_reg[q] <= first_incomplete_reg);

reg past = 0;
always @(posedge clk) past <= 1;
always @* if (past && begun_reg) begin
    cover (added && completes && own_threshold == 2);
    cover (force_out && completes);
    cover (occupied);
    cover (late && is_new == 0);
    cover (given_up != 0);
end
