// What the control of the queue promises. This file is read inside `olaf_queue_control`.
//
// The properties hold for inputs of any kind in any cycle, resets included. They are proved by
// induction over a cycle, so for any number of cycles. With COUNTS only the sum of the counts is proved, and what
// is proved without COUNTS is taken for granted; with WITHOUT_COUNTS all else. LEAVES_ONLY leaves out what is about the
// proof's own ledgers, which no change of the module can break.
`ifdef COUNTS
`define OF_THE_RING assume
`else
`define OF_THE_RING assert
`endif

// The slots of the ring that hold an entry, and those that will after the first step of a cycle.
reg [SLOTS-1:0] occupied, occupied_after;
reg same_flow_twice;
integer j, k;
always @* begin
    same_flow_twice = 0;
    for (j = 0; j < SLOTS; j = j + 1) begin
        occupied[j] = (j >= head_reg ? j - head_reg : j + SLOTS - head_reg) < used_reg;
        occupied_after[j] = (j >= head_after ? j - head_after : j + SLOTS - head_after) < used_after;
        for (k = 0; k < j; k = k + 1)
            if (open_reg[j] && open_reg[k] && flow_reg[j] == flow_reg[k]) same_flow_twice = 1;
    end
end

// The ring: which slots hold an entry, and that all but the locked head are open.
always @* begin
    `OF_THE_RING (head_reg < SLOTS);
    `OF_THE_RING (used_reg <= SLOTS);
    if (departing_reg) `OF_THE_RING (used_reg != 0);
    for (j = 0; j < SLOTS; j = j + 1)
        `OF_THE_RING (open_reg[j] == (occupied[j] && !(departing_reg && head_reg == j)));
end

// At most one open entry of a flow, so that an arrival meets one at most. The locked head may be of the same flow.
`ifndef COUNTS
always @* one_open_entry: assert (!same_flow_twice);
`endif
always @* `OF_THE_RING ((meets_at & (meets_at - 1'b1)) == 0);

`ifndef WITHOUT_COUNTS
// The counts add up: of the contributors that came, those that did not leave and were not refused,
// filtered, dropped or replaced are in the queue. `balance` counts them one by one.
//
// A sum of eight counts at once is too much for a prover that sees bits. So a tree of ledgers is between
// the balance and the counts: a ledger books what comes to the slots below it and what leaves them. A
// leaf is the count of its entry, and a ledger is the sum of the two below it; the balance is the root.
localparam BALANCE = COUNT + SLOT + 1;
localparam LEAVES = 1 << SLOT;
wire [COUNT-1:0] comes = appended || merged || replaced ? contributors : 0;
wire [COUNT-1:0] goes = replaced ? displaced : 0;
wire [COUNT-1:0] leaves = ends ? departing_contributors : 0;
reg [BALANCE-1:0] balance = 0;
always @(posedge clk) balance <= rst ? 0 : balance + comes - goes - leaves;

wire [BALANCE-1:0] ledger [1:2*LEAVES-1];
genvar n;
generate
    for (n = 1; n < 2 * LEAVES; n = n + 1) begin : g_ledger
        // Numbers of the slots below: those whose leaf's number begins as `n`.
        localparam LEVEL = $clog2(n + 1) - 1;
        wire [SLOT:0] leaf_comes = LEAVES + slot, leaf_leaves = LEAVES + head_reg;
        wire books_in = leaf_comes >> (SLOT - LEVEL) == n;
        wire books_out = leaf_leaves >> (SLOT - LEVEL) == n;
        reg [BALANCE-1:0] books = 0;
        always @(posedge clk)
            books <= rst ? 0 : books + (books_in ? comes - goes : 0) - (books_out ? leaves : 0);
        assign ledger[n] = books;
    end
`ifndef LEAVES_ONLY
    for (n = 1; n < LEAVES; n = n + 1) begin : g_sum
        always @* assert (ledger[n] == ledger[2*n] + ledger[2*n+1]);
    end
`endif
    for (n = 0; n < LEAVES; n = n + 1) begin : g_leaf
        if (n < SLOTS) begin : g_slot
            always @* assert (ledger[LEAVES + n]
                == (open_reg[n] || (departing_reg && head_reg == n) ? contributors_reg[n] : 0));
        end else begin : g_none
            always @* assert (ledger[LEAVES + n] == 0);
        end
    end
endgenerate
`ifndef LEAVES_ONLY
always @* nothing_lost_or_doubled: assert (balance == ledger[1]);
`endif
`endif

`ifndef COUNTS
// Each arrival has exactly one fate.
always @* one_fate: assert (
    {2'd0, appended} + merged + replaced + filtered + dropped + rejected == arrive);

// An arrival goes to an open entry of its flow, or to a slot that is free.
always @* begin
    if (merged || replaced || filtered) begin
        assert (open_reg[slot] && flow_reg[slot] == flow);
        not_locked: assert (!(departing_reg && slot == head_reg) && !(begins && slot == head_after));
    end
    if (appended) free_slot: assert (!occupied_after[slot]);
end

// The locked entry does not change.
reg held = 0;
reg [FLOW-1:0] held_flow;
reg [COUNT-1:0] held_contributors;
always @(posedge clk) begin
    held <= departing_reg && !ends && !rst;
    held_flow <= departing_flow;
    held_contributors <= departing_contributors;
end
always @* if (held) locked: assert (
    departing && departing_flow == held_flow && departing_contributors == held_contributors);

// A bounded drain: without arrivals, and with a link that takes an entry and sends it whenever there
// is one, the queue is empty after one cycle more than it has slots.
localparam [7:0] BOUND = SLOTS + 1;
wire [7:0] rank = used_reg + (used_reg != 0 && !departing_reg);
reg [7:0] quiet = 0;
always @(posedge clk)
    if (rst || arrive || !begin_departure || !end_departure) quiet <= 0;
    else if (quiet < BOUND) quiet <= quiet + 1;
always @* begin
    assert (quiet <= BOUND);
    drains: assert (used_reg == 0 || quiet + rank <= BOUND);
    if (quiet == BOUND) empty_in_time: assert (used_reg == 0);
end

// Each promise is about something that happens.
always @(posedge clk) if (!rst) begin
    cover (appended && used_reg == SLOTS && ends);
    cover (dropped && used_reg == SLOTS);
    cover (merged && departing_reg && departing_flow == flow);
    cover (merged && begins);
    cover (replaced && better && displaced > 2);
    cover (replaced && !better);
    cover (filtered && !not_finite);
    cover (rejected && !not_finite && !no_sum);
    cover (appended && begins && flow == flow_reg[head_after]);
    // The bound is reached: a cycle before, there is still an entry.
    cover (quiet == BOUND - 1 && used_reg == 1);
end
`endif
