// What the counters promise. This file is read inside `axil_counters`. The properties are proved by
// induction, for hosts of any behaviour, also such that break the rules of AXI.

reg past = 0;
reg past_rst, past_rvalid, past_rready, past_bvalid, past_bready, past_read, past_write;
reg [31:0] past_rdata;
reg [1:0] past_rresp;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    {past_rvalid, past_rready, past_rdata, past_rresp} <=
        {s_axil_rvalid, s_axil_rready, s_axil_rdata, s_axil_rresp};
    {past_bvalid, past_bready} <= {s_axil_bvalid, s_axil_bready};
    past_read <= s_axil_arvalid && s_axil_arready;
    past_write <= s_axil_awvalid && s_axil_awready;
end

// An answer stays, unchanged, until the host takes it; without a question there is none.
always @* if (past && !past_rst) begin
    if (past_rvalid && !past_rready)
        read_stays: assert (s_axil_rvalid && s_axil_rdata == past_rdata && s_axil_rresp == past_rresp);
    if (past_bvalid && !past_bready) write_stays: assert (s_axil_bvalid);
    if (past_read) read_answered: assert (s_axil_rvalid);
    if (past_write) write_answered: assert (s_axil_bvalid);
    if (past_rvalid && past_rready && !past_read) read_ends: assert (!s_axil_rvalid);
    if (past_bvalid && past_bready && !past_write) write_ends: assert (!s_axil_bvalid);
    if (!past_rvalid && !past_read) no_read: assert (!s_axil_rvalid);
    if (!past_bvalid && !past_write) no_write: assert (!s_axil_bvalid);
end

// The address and the word of a write are taken together.
always @* together: assert (s_axil_awready == s_axil_wready);

// Reads of counters do not follow each other: `event_counters` needs that.
reg past_reads = 0;
always @(posedge clk) past_reads <= reads_unused && !rst;
always @* if (past) apart: assert (!(reads_unused && past_reads));

// Questions that were taken and answers that were taken: at most one is open.
reg [3:0] asked = 0, answered = 0;
always @(posedge clk) begin
    asked <= rst ? 0 : asked + (s_axil_arvalid && s_axil_arready);
    answered <= rst ? 0 : answered + (s_axil_rvalid && s_axil_rready);
end
always @* one_answer_each: assert (asked == answered + (s_axil_rvalid ? 4'd1 : 4'd0));

// A counter is the sum of what it grew by, whatever the host does: the prover picks the counter.
(* anyconst *) reg [7:0] watched;
reg [63:0] total = 0, value, amount_watched;
reg [AMOUNT-1:0] amounts;
reg started = 0;
always @* begin
    value = 0;
    amounts = 0;
    for (i = 0; i < COUNTERS; i = i + 1) if (watched == i) begin
        value = counter_reg[i];
        amounts = grow[AMOUNT*i +: AMOUNT];
    end
end
always @(posedge clk) begin
    total <= rst ? 0 : total + amounts;
    if (rst) started <= 1;
end
always @* if (started && watched < COUNTERS) counts: assert (value == total);

always @(posedge clk) if (past && !rst) begin
    cover (s_axil_rvalid && s_axil_rready && s_axil_rresp == 2'b10);
    cover (past_rvalid && !past_rready && s_axil_rvalid && s_axil_rready && s_axil_rresp == 2'b00);
    cover (s_axil_bvalid && s_axil_bready && s_axil_rvalid);
    cover (asked == 3);
    cover (started && watched < COUNTERS && value > 2);
end
