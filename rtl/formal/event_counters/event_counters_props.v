// What the counters of events promise. This file is read inside `event_counters`. The properties are proved by
// induction, for any events, and for reads that do not follow each other.

reg past_reads = 0, started = 0;
always @(posedge clk) begin
    past_reads <= reads && !rst;
    if (rst) started <= 1;
end
always @* if (reads) begin
    assume (!past_reads);
    assume (counter < COUNTERS);
end

// The prover picks a counter.
(* anyconst *) reg [COUNTER-1:0] watched;
always @* assume (watched < COUNTERS);
reg [TOTAL-1:0] happened = 0;
always @(posedge clk) happened <= rst ? 0 : happened + happens[watched];

// No event is lost or counted twice; a read gives all of them.
wire [TOTAL-1:0] counted = (written_reg[watched] ? total_reg[watched] : 0) + recent_reg[watched];
always @* if (started) begin
    counts: assert (counted == happened);
    if (reads && counter == watched) tells: assert (value == happened);
end

// Why the few bits are enough: each step of the round takes two cycles at most.
wire [COUNTER:0] steps = watched >= turn_reg ? watched - turn_reg : COUNTERS + watched - turn_reg;
always @* if (started) begin
    in_range: assert (turn_reg < COUNTERS);
    few: assert (recent_reg[watched] <= 2*(COUNTERS - 1 - steps) + 1 + past_reads);
end

always @(posedge clk) if (started && !rst) begin
    read: cover (reads && counter == watched && value == 3);
    most: cover (recent_reg[watched] == 2*COUNTERS - 1);
end
