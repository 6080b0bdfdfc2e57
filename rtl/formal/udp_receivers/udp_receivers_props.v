// What the table of addresses promises, for any reads and writes. This file is read inside `udp_receivers`.

reg past = 0, past_rst, past_ar, past_b, past_r;
reg [ADDRESS-1:0] past_araddr;
reg [1:0]  past_bresp;
reg [33:0] past_read;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_ar <= s_axil_arvalid && !s_axil_arready;
    past_araddr <= s_axil_araddr;
    past_b <= s_axil_bvalid && !s_axil_bready;
    past_r <= s_axil_rvalid && !s_axil_rready;
    {past_bresp, past_read} <= {s_axil_bresp, s_axil_rresp, s_axil_rdata};
end
wire goes_on = past && !past_rst;
always @* assume (past || rst);
always @* assume (lookup < PORTS);

// The prover picks an entry: 0 is the switch, 1 the first receiver. `whole` is what its last write of a fourth word made of it:
// the other three words are those that were written last.
(* anyconst *) reg [NUMBER-1:0] picked;
always @* assume (picked < ENTRIES);
wire write = s_axil_awvalid && s_axil_awready && s_axil_wvalid && s_axil_wready;
wire [ADDRESS-1:0] first_word = 16 * (picked + 1);
wire fits = s_axil_awaddr >= 16 && s_axil_awaddr < 16 * (ENTRIES + 1) && s_axil_awaddr[1:0] == 0
    && s_axil_wstrb == 4'hf;
reg [15:0] high;
reg [31:0] low, address;
reg [95:0] whole;
reg        known = 0;
wire finishes = write && fits && s_axil_awaddr == first_word + 12;
always @(posedge clk) begin
    if (write && fits) case (s_axil_awaddr[3:2])
        0: high <= s_axil_wdata[15:0];
        1: low <= s_axil_wdata;
        2: address <= s_axil_wdata;
        3: if (finishes) {known, whole} <= {s_axil_wdata[16], high, low, address, s_axil_wdata[15:0]};
    endcase
    if (rst) known <= 0;
end
// Words that were never written are anything, and the same here.
always @* if (!past) assume (mac_reg == {high, low} && ip_reg == address);
always @* if (past) begin
    assert (mac_reg == {high, low} && ip_reg == address);
    assert (valid_reg[picked] == known);
    if (known) assert (entry_reg[picked] == whole);
    // What datagrams get is always a whole entry.
    if (picked == 0) of_switch: assert (sender == (known ? whole : 96'd0));
    else if (lookup == picked - 1) begin
        of_receiver: assert (entry_valid == known);
        if (known) is_whole: assert (entry == whole);
    end
end

// It changes with the write of its fourth word, and never else.
reg [96:0] past_entry;
reg past_finishes;
always @(posedge clk) {past_entry, past_finishes} <= {known, whole, finishes};
always @* if (goes_on && !past_finishes) only_then: assert ({known, whole} == past_entry);

// Each request has one answer, which stays.
reg writing = 0, reading = 0, refuses;
reg [1:0] read_resp;
reg [31:0] read_word;
reg of_picked;
wire read = s_axil_arvalid && s_axil_arready;
wire [127:0] words = known ? {15'd0, 1'b1, whole[15:0], whole[47:16], whole[79:48], 16'd0, whole[95:80]} : 128'd0;
wire of_head = s_axil_araddr < 16;
always @(posedge clk) begin
    writing <= !rst && (write || (writing && !s_axil_bready));
    reading <= !rst && (read || (reading && !s_axil_rready));
    if (write) refuses <= !fits;
    if (read) begin
        read_resp <= s_axil_araddr[1:0] == 0 && s_axil_araddr < 16 * (ENTRIES + 1) ? OKAY : SLVERR;
        of_picked <= (s_axil_araddr & ~12) == first_word;
        read_word <= words >> 32 * s_axil_araddr[3:2];
    end
end
always @* if (past && !rst) begin
    taken_at_once: assert ((s_axil_awvalid && s_axil_wvalid && !writing) == s_axil_awready);
    both: assert (s_axil_awready == s_axil_wready);
    r_taken: assert (s_axil_arready == !reading);
    w_answer: assert (s_axil_bvalid == writing);
    r_answer: assert (s_axil_rvalid == reading);
    if (writing) w_says: assert (s_axil_bresp == (refuses ? SLVERR : OKAY));
    if (reading) r_says: assert (s_axil_rresp == read_resp);
    // A read gives what datagrams got in the cycle in which it was taken.
    if (reading && of_picked) r_word: assert (s_axil_rdata == read_word);
    if (reading && read_resp == SLVERR) nothing: assert (s_axil_rdata == 0);
end
always @* if (goes_on && !rst) begin
    if (past_b) w_stays: assert (s_axil_bvalid && s_axil_bresp == past_bresp);
    if (past_r) r_stays: assert (s_axil_rvalid && {s_axil_rresp, s_axil_rdata} == past_read);
end

always @* if (past && !rst) begin
    has_one: cover (picked == PORTS && lookup == PORTS - 1 && entry_valid && entry[95:48] == 48'h0123456789ab);
    taken_away: cover (past_entry[96] && !known && goes_on);
    refused: cover (s_axil_bvalid && s_axil_bready && refuses && past_b);
    read_again: cover (reading && of_picked && s_axil_rdata == 32'h1ffff);
end
