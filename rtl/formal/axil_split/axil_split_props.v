// What the way to several blocks promises, for any requests, any blocks and any pauses. This file is read inside `axil_split`.

// A request that is offered stays until it is taken; an address and its word come and go alone.
reg past = 0, past_rst, past_aw, past_w, past_ar, past_b, past_r;
reg [ADDRESS-1:0] past_awaddr, past_araddr;
reg [35:0] past_word;
reg [1:0]  past_bresp;
reg [33:0] past_read;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_aw <= s_axil_awvalid && !s_axil_awready;
    past_w <= s_axil_wvalid && !s_axil_wready;
    past_ar <= s_axil_arvalid && !s_axil_arready;
    {past_awaddr, past_araddr, past_word} <= {s_axil_awaddr, s_axil_araddr, s_axil_wdata, s_axil_wstrb};
    past_b <= s_axil_bvalid && !s_axil_bready;
    past_r <= s_axil_rvalid && !s_axil_rready;
    {past_bresp, past_read} <= {s_axil_bresp, s_axil_rresp, s_axil_rdata};
end
wire goes_on = past && !past_rst;
always @* begin
    assume (past || rst);
    if (goes_on && past_aw) assume (s_axil_awvalid && s_axil_awaddr == past_awaddr);
    if (goes_on && past_w) assume (s_axil_wvalid && {s_axil_wdata, s_axil_wstrb} == past_word);
    if (goes_on && past_ar) assume (s_axil_arvalid && s_axil_araddr == past_araddr);
end

// Each block answers what it took, once, and its answer stays. It takes requests whenever it likes.
wire [BLOCKS-1:0] writes_taken = m_axil_awvalid & m_axil_awready;
wire [BLOCKS-1:0] reads_taken = m_axil_arvalid & m_axil_arready;
wire [BLOCKS-1:0] writes_answered = m_axil_bvalid & m_axil_bready;
wire [BLOCKS-1:0] reads_answered = m_axil_rvalid & m_axil_rready;
reg [BLOCKS-1:0] owes_write = 0, owes_read = 0, past_mb = 0, past_mr = 0;
reg [2*BLOCKS-1:0]  past_mbresp, past_mrresp;
reg [32*BLOCKS-1:0] past_mrdata;
always @(posedge clk) begin
    owes_write <= rst ? 0 : (owes_write & ~writes_answered) | writes_taken;
    owes_read <= rst ? 0 : (owes_read & ~reads_answered) | reads_taken;
    past_mb <= rst ? 0 : m_axil_bvalid & ~m_axil_bready;
    past_mr <= rst ? 0 : m_axil_rvalid & ~m_axil_rready;
    {past_mbresp, past_mrresp, past_mrdata} <= {m_axil_bresp, m_axil_rresp, m_axil_rdata};
end
integer b;
always @* for (b = 0; b < BLOCKS; b = b + 1) begin
    assume (!m_axil_bvalid[b] || owes_write[b]);
    assume (!m_axil_rvalid[b] || owes_read[b]);
    if (past_mb[b]) assume (m_axil_bvalid[b] && m_axil_bresp[2*b +: 2] == past_mbresp[2*b +: 2]);
    if (past_mr[b]) assume (m_axil_rvalid[b] && m_axil_rresp[2*b +: 2] == past_mrresp[2*b +: 2]);
    if (past_mr[b]) assume (m_axil_rdata[32*b +: 32] == past_mrdata[32*b +: 32]);
end

// The request whose answer is owed: its block, or none.
reg writing = 0, reading = 0;
reg [ADDRESS-13:0] write_of, read_of;
wire takes_write = s_axil_awvalid && s_axil_awready;
wire takes_read = s_axil_arvalid && s_axil_arready;
wire gives_write = s_axil_bvalid && s_axil_bready;
wire gives_read = s_axil_rvalid && s_axil_rready;
always @(posedge clk) begin
    writing <= !rst && (takes_write || (writing && !gives_write));
    reading <= !rst && (takes_read || (reading && !gives_read));
    if (takes_write) write_of <= s_axil_awaddr[ADDRESS-1:12];
    if (takes_read) read_of <= s_axil_araddr[ADDRESS-1:12];
end
wire [BLOCKS-1:0] write_at = write_of < BLOCKS ? 1 << write_of : 0;
wire [BLOCKS-1:0] read_at = read_of < BLOCKS ? 1 << read_of : 0;
wire [BLOCKS-1:0] asked_write = s_axil_awaddr[ADDRESS-1:12] < BLOCKS ? 1 << s_axil_awaddr[ADDRESS-1:12] : 0;
wire [BLOCKS-1:0] asked_read = s_axil_araddr[ADDRESS-1:12] < BLOCKS ? 1 << s_axil_araddr[ADDRESS-1:12] : 0;
wire [1:0]  resp_of_write = write_at == 0 ? DECERR : m_axil_bresp >> 2*write_of;
wire [1:0]  resp_of_read = read_at == 0 ? DECERR : m_axil_rresp >> 2*read_of;
wire [31:0] data_of_read = read_at == 0 ? 0 : m_axil_rdata >> 32*read_of;

always @* if (past && !rst) begin
    // A request goes to the block of its address, to no other, and at the same time as it is taken.
    if (takes_write) w_at: assert (s_axil_wvalid && s_axil_wready && writes_taken == asked_write && !writing);
    else w_none: assert (writes_taken == 0 && !s_axil_wready);
    if (takes_read) r_at: assert (reads_taken == asked_read && !reading);
    else r_none: assert (reads_taken == 0);
    w_same: assert (m_axil_wvalid == m_axil_awvalid && m_axil_awaddr == s_axil_awaddr[11:0]
                    && {m_axil_wdata, m_axil_wstrb} == {s_axil_wdata, s_axil_wstrb});
    r_same: assert (m_axil_araddr == s_axil_araddr[11:0]);
    // None is lost: where no answer is owed, a request is taken as soon as its block takes it.
    if (s_axil_awvalid && s_axil_wvalid && !writing && (asked_write == 0 || (asked_write & m_axil_awready) != 0))
        w_taken: assert (s_axil_awready);
    if (s_axil_arvalid && !reading && (asked_read == 0 || (asked_read & m_axil_arready) != 0))
        r_taken: assert (s_axil_arready);
    // Only the block of the request owes an answer; its answer is the one that comes, and comes at once.
    w_owes: assert (owes_write == (writing ? write_at : 0));
    r_owes: assert (owes_read == (reading ? read_at : 0));
    w_answer: assert (s_axil_bvalid == (writing && (write_at == 0 || (write_at & m_axil_bvalid) != 0)));
    r_answer: assert (s_axil_rvalid == (reading && (read_at == 0 || (read_at & m_axil_rvalid) != 0)));
    if (s_axil_bvalid) w_says: assert (s_axil_bresp == resp_of_write);
    if (s_axil_rvalid) r_says: assert (s_axil_rresp == resp_of_read && s_axil_rdata == data_of_read);
    w_once: assert (writes_answered == (gives_write ? write_at : 0));
    r_once: assert (reads_answered == (gives_read ? read_at : 0));
    // What the registers hold.
    assert (writing_reg == owes_write && write_lost_reg == (writing && write_at == 0));
    assert (reading_reg == owes_read && read_lost_reg == (reading && read_at == 0));
end
always @* if (goes_on && !rst) begin
    if (past_b) w_stays: assert (s_axil_bvalid && s_axil_bresp == past_bresp);
    if (past_r) r_stays: assert (s_axil_rvalid && {s_axil_rresp, s_axil_rdata} == past_read);
end

always @* if (past && !rst) begin
    other_block: cover (gives_read && read_of == 2 && takes_write && s_axil_awaddr[13:12] == 1);
    nowhere: cover (gives_write && write_of == 3 && past_b);
    again: cover (goes_on && past_r && takes_write && gives_read && s_axil_rdata != 0);
end
