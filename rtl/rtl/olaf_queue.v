// The OLAF queue (OLAF §4, §7; docs/queue.md): updates of one cluster replace or join each other while they wait
// for the link. Everything else that comes passes on untouched, but for the status in answers (OLAF §5).
//
// A frame is a datagram from its first byte, as in olaf-wire/src/offsets.rs, in beats of 64 bytes; Ethernet, IP
// and UDP are gone. Every frame has one fate:
//
//   s_axis -> olaf_ingress -> olaf_store -> olaf_arrivals -> olaf_sums -> olaf_departures -> m_axis
//                  |                     (decisions: olaf_queue_control)        |
//                  +-> olaf_status -> frame_fifo (what is no update) -----------+
//
// Beats of another width than 512 bit are converted at both ends.
//
// Updates come in and are added at one beat a cycle. The order of events in a cycle is that of
// `olaf_queue_control`: an entry ends, the next is locked, an update arrives.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module olaf_queue #(
    // Entries that the queue holds, the departing one included; at least 2.
    parameter SLOTS = 8,
    // Bytes of the longest frame, 128 to 65,507.
    parameter FRAME = 256,
    // Bits of a beat of `s_axis` and `m_axis`: 64, 128, 256, 512 or 1024. Inside, beats have 512 bit.
    parameter DATA = 512,
    // 1: slots and stores are in block RAM. 0: in LUT RAM.
    parameter BLOCK = 0,
    // 1: the reward gate can be switched on (OLAF §3). 0: there is none.
    parameter GATE = 1
) (
    input  wire              clk,
    input  wire              rst,

    // What departing updates carry as session. It must not change while a frame departs.
    input  wire [31:0]       session,
    // The reward gate, and its threshold as f64.
    input  wire              gate,
    input  wire [63:0]       gate_threshold,
    // For the status in answers: clusters heard of late; microseconds in which each active cluster is served
    // once, 0 if not known.
    input  wire [15:0]       active_clusters,
    input  wire [31:0]       round_us,

    input  wire [DATA-1:0]   s_axis_tdata,
    input  wire [DATA/8-1:0] s_axis_tkeep,
    input  wire              s_axis_tvalid,
    output wire              s_axis_tready,
    input  wire              s_axis_tlast,

    output wire [DATA-1:0]   m_axis_tdata,
    output wire [DATA/8-1:0] m_axis_tkeep,
    output wire              m_axis_tvalid,
    input  wire              m_axis_tready,
    output wire              m_axis_tlast,

    // What happens in a cycle, for a bench that follows the queue: the fate of an update that is decided
    // about, {rejected, dropped, filtered, replaced, merged, appended}; an entry is locked; its slot is freed.
    output wire [5:0]        fate,
    output wire              begun,
    output wire              ended,

    // Counters: see `olaf_queue_counters`.
    input  wire [11:0]       s_axil_awaddr,
    input  wire              s_axil_awvalid,
    output wire              s_axil_awready,
    input  wire [31:0]       s_axil_wdata,
    input  wire [3:0]        s_axil_wstrb,
    input  wire              s_axil_wvalid,
    output wire              s_axil_wready,
    output wire [1:0]        s_axil_bresp,
    output wire              s_axil_bvalid,
    input  wire              s_axil_bready,
    input  wire [11:0]       s_axil_araddr,
    input  wire              s_axil_arvalid,
    output wire              s_axil_arready,
    output wire [31:0]       s_axil_rdata,
    output wire [1:0]        s_axil_rresp,
    output wire              s_axil_rvalid,
    input  wire              s_axil_rready
);

localparam SLOT = $clog2(SLOTS);
localparam BEATS = (FRAME + 63) / 64;
localparam BEAT = $clog2(BEATS);
// Beats that come after the store said that it has no room.
localparam MARGIN = 8;
localparam ADDRESS = $clog2(2*BEATS + 2*MARGIN);
localparam HEADER = 96 + 32 + 32 + 16 + 64 + 64 + 2;

generate
    if (DATA < 64 || DATA > 1024 || (DATA & (DATA - 1)) != 0) begin : g_illegal
        olaf_queue_needs_a_width_of_64_to_1024 illegal();
    end
endgenerate

// Beats of 512 bit from here on.
wire [511:0] s_tdata, m_tdata;
wire [63:0]  s_tkeep, m_tkeep;
wire         s_tvalid, s_tready, s_tlast, m_tvalid, m_tready, m_tlast;
generate
    if (DATA == 512) begin : g_same
        assign {s_tdata, s_tkeep, s_tvalid, s_tlast} = {s_axis_tdata, s_axis_tkeep, s_axis_tvalid, s_axis_tlast};
        assign s_axis_tready = s_tready;
        assign {m_axis_tdata, m_axis_tkeep, m_axis_tvalid, m_axis_tlast} = {m_tdata, m_tkeep, m_tvalid, m_tlast};
        assign m_tready = m_axis_tready;
    end else if (DATA < 512) begin : g_narrow
        axis_widen #(.NARROW(DATA), .WIDE(512)) entrance (
            .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep),
            .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),
            .m_axis_tdata(s_tdata), .m_axis_tkeep(s_tkeep),
            .m_axis_tvalid(s_tvalid), .m_axis_tready(s_tready), .m_axis_tlast(s_tlast)
        );
        axis_narrow #(.WIDE(512), .NARROW(DATA)) exit (
            .clk(clk), .rst(rst), .s_axis_tdata(m_tdata), .s_axis_tkeep(m_tkeep),
            .s_axis_tvalid(m_tvalid), .s_axis_tready(m_tready), .s_axis_tlast(m_tlast),
            .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep),
            .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast)
        );
    end else begin : g_wide
        axis_narrow #(.WIDE(DATA), .NARROW(512)) entrance (
            .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tkeep(s_axis_tkeep),
            .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),
            .m_axis_tdata(s_tdata), .m_axis_tkeep(s_tkeep),
            .m_axis_tvalid(s_tvalid), .m_axis_tready(s_tready), .m_axis_tlast(s_tlast)
        );
        axis_widen #(.NARROW(512), .WIDE(DATA)) exit (
            .clk(clk), .rst(rst), .s_axis_tdata(m_tdata), .s_axis_tkeep(m_tkeep),
            .s_axis_tvalid(m_tvalid), .s_axis_tready(m_tready), .s_axis_tlast(m_tlast),
            .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(m_axis_tkeep),
            .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast)
        );
    end
endgenerate

// In: what is it?
wire         room, update, other, in_last, in_good, framing, too_long, refused;
wire [511:0] in_data;
wire [63:0]  in_keep;
wire [HEADER-1:0] in_header, header;
wire [95:0]  in_flow, flow;
wire [31:0]  in_worker, in_contributors, worker, contributors;
wire [15:0]  in_lanes, lanes;
wire [63:0]  in_weight, in_reward, weight, reward;
wire         in_not_finite, in_large, lane_not_finite, lane_large;

olaf_ingress #(.FRAME(FRAME)) ingress (
    .clk(clk), .rst(rst),
    .s_axis_tdata(s_tdata), .s_axis_tkeep(s_tkeep), .s_axis_tvalid(s_tvalid),
    .s_axis_tready(s_tready), .s_axis_tlast(s_tlast), .room(room),
    .update(update), .other(other), .data(in_data), .keep(in_keep), .last(in_last), .good(in_good),
    .framing(framing), .too_long(too_long), .refused(refused),
    .flow(in_flow), .worker(in_worker), .contributors(in_contributors), .lanes(in_lanes),
    .weight(in_weight), .reward(in_reward), .not_finite(in_not_finite), .vast(in_large)
);
assign in_header = {
    in_flow, in_worker, in_contributors, in_lanes, in_weight, in_reward, in_not_finite, in_large
};

// Updates wait until they are whole.
wire               valid, take;
wire [ADDRESS-1:0] base, store_address;
wire [511:0]       arrived;
olaf_store #(
    .BEATS(BEATS), .HEADER(HEADER), .BLOCK(BLOCK), .MARGIN(MARGIN), .ADDRESS(ADDRESS)
) store (
    .clk(clk), .rst(rst), .room(room),
    .write(update), .write_data(in_data), .write_last(in_last), .write_drop(!in_good),
    .write_header(in_header),
    .valid(valid), .header(header), .take(take),
    .base(base), .read_address(store_address), .read_data(arrived)
);
assign {flow, worker, contributors, lanes, weight, reward, lane_not_finite, lane_large} = header;

// Decisions.
wire             arrive, not_finite, no_sum, meets, joins, too_many, wrong_size, overflow;
wire             appended, merged, replaced, filtered, dropped, rejected, better, worse;
wire [SLOT-1:0]  slot, departing_slot;
wire [31:0]      displaced, departing_contributors;
wire             begin_departure, end_departure, departing;
wire [SLOT:0]    used;
wire [95:0]      departing_flow_unused;
olaf_queue_control #(.SLOTS(SLOTS)) control (
    .clk(clk), .rst(rst), .arrive(arrive), .flow(flow), .worker(worker), .contributors(contributors),
    .not_finite(not_finite), .better(better), .worse(worse), .no_sum(no_sum),
    .meets(meets), .slot(slot), .joins(joins), .too_many(too_many),
    .appended(appended), .merged(merged), .replaced(replaced), .filtered(filtered), .dropped(dropped),
    .rejected(rejected), .displaced(displaced),
    .begin_departure(begin_departure), .end_departure(end_departure), .begun(begun),
    .departing(departing), .departing_slot(departing_slot), .departing_flow(departing_flow_unused),
    .departing_contributors(departing_contributors), .used(used)
);
assign fate = {rejected, dropped, filtered, replaced, merged, appended};
assign ended = end_departure;

wire                compare, compared, mean_take, mean_add, mean_trial, risky_product, risky_sum, tried;
wire                product_overflowed, sum_overflowed;
wire                issue, issue_add, issue_trial, sum_not_finite;
wire [SLOT-1:0]     issue_slot;
wire [BEAT-1:0]     issue_beat;
wire [15:0]         issue_lanes;
wire [SLOTS-1:0]    anew, vast, slot_merged;
wire [16*SLOTS-1:0] slot_lanes;
olaf_arrivals #(.SLOTS(SLOTS), .BEAT(BEAT), .ADDRESS(ADDRESS)) arrivals (
    .clk(clk), .rst(rst),
    .valid(valid), .lanes(lanes), .lane_not_finite(lane_not_finite), .lane_large(lane_large),
    .reward_not_finite(&reward[62:52]), .take(take), .base(base), .read_address(store_address),
    .arrive(arrive), .not_finite(not_finite), .no_sum(no_sum), .meets(meets), .slot(slot), .joins(joins),
    .too_many(too_many), .appended(appended), .merged(merged), .replaced(replaced), .rejected(rejected),
    .wrong_size(wrong_size), .overflow(overflow), .gated(compared), .gate(compare),
    .mean_take(mean_take), .mean_add(mean_add), .mean_trial(mean_trial),
    .risky_product(risky_product), .risky_sum(risky_sum), .tried(tried),
    .product_overflowed(product_overflowed), .sum_overflowed(sum_overflowed),
    .issue(issue), .issue_slot(issue_slot), .issue_beat(issue_beat), .issue_lanes(issue_lanes),
    .issue_add(issue_add), .issue_trial(issue_trial), .sum_not_finite(sum_not_finite),
    .anew(anew), .vast(vast), .slot_lanes(slot_lanes), .slot_merged(slot_merged)
);

// Sums of lanes, of weights and of rewards.
wire            unsettled, read;
wire [BEAT-1:0] read_beat;
wire [511:0]    read_data;
olaf_sums #(.SLOTS(SLOTS), .BEAT(BEAT), .BLOCK(BLOCK)) adding (
    .clk(clk), .rst(rst),
    .issue(issue), .slot(issue_slot), .beat(issue_beat), .lanes(issue_lanes), .add(issue_add),
    .trial(issue_trial), .arrived(arrived), .not_finite(sum_not_finite), .anew(anew), .vast(vast),
    .watched(departing_slot), .unsettled(unsettled),
    .read(read), .read_slot(departing_slot), .read_beat(read_beat), .read_data(read_data)
);

wire            look, look_now, known, soon, gate_look, gate_known;
wire [SLOT-1:0] look_slot, gate_slot;
wire [63:0]     known_weight, known_mean;
olaf_mean #(.SLOTS(SLOTS)) mean (
    .clk(clk), .rst(rst),
    .take(mean_take), .slot(slot), .weight(weight), .reward(reward), .add(mean_add), .trial(mean_trial),
    .risky_product(risky_product), .risky_sum(risky_sum), .tried(tried),
    .product_overflowed(product_overflowed), .sum_overflowed(sum_overflowed),
    .look(look), .look_now(look_now), .look_slot(look_slot), .gate_look(gate_look), .gate_slot(gate_slot),
    .known(known), .soon(soon), .gate_known(gate_known),
    .known_weight(known_weight), .known_mean(known_mean)
);

generate
    if (GATE) begin : g_gate
        olaf_gate #(.SLOTS(SLOTS)) comparison (
            .clk(clk), .rst(rst), .gate(gate), .threshold(gate_threshold),
            .store(mean_take && !mean_add), .slot(slot), .reward(reward), .merged(slot_merged[slot]),
            .compare(compare), .taken(take), .compared(compared), .better(better), .worse(worse),
            .look(gate_look), .look_slot(gate_slot), .known(gate_known), .mean(known_mean)
        );
    end else begin : g_no_gate
        assign {compared, better, worse, gate_look} = 4'b1000;
        assign gate_slot = 0;
        wire unused = &{1'b0, gate, gate_threshold, compare, gate_known};
    end
endgenerate

// What is no update.
wire [511:0] status_data, other_data;
wire [63:0]  status_keep, other_keep;
wire         status_valid, status_last, status_drop, status_ready_unused, stamped;
wire         other_valid, other_ready, other_last, passed, no_room;
olaf_status #(.USER(1)) status (
    .clk(clk), .rst(rst), .active_clusters(active_clusters), .slots(SLOTS[15:0]),
    .used({{15-SLOT{1'b0}}, used}), .round_us(round_us), .stamped(stamped),
    .s_axis_tdata(in_data), .s_axis_tkeep(in_keep), .s_axis_tvalid(other),
    .s_axis_tready(status_ready_unused), .s_axis_tlast(in_last), .s_axis_tuser(!in_good),
    .m_axis_tdata(status_data), .m_axis_tkeep(status_keep), .m_axis_tvalid(status_valid),
    .m_axis_tready(1'b1), .m_axis_tlast(status_last), .m_axis_tuser(status_drop)
);
frame_fifo #(.DEPTH(1 << ADDRESS), .BLOCK(BLOCK)) others (
    .clk(clk), .rst(rst),
    .write(status_valid), .write_data(status_data), .write_keep(status_keep), .write_last(status_last),
    .write_drop(status_drop), .taken(passed), .no_room(no_room),
    .m_axis_tdata(other_data), .m_axis_tkeep(other_keep), .m_axis_tvalid(other_valid),
    .m_axis_tready(other_ready), .m_axis_tlast(other_last)
);

// Out.
olaf_departures #(.SLOTS(SLOTS), .BEAT(BEAT)) departures (
    .clk(clk), .rst(rst), .session(session),
    .begin_departure(begin_departure), .end_departure(end_departure), .begun(begun),
    .departing(departing), .departing_slot(departing_slot),
    .departing_contributors(departing_contributors), .used(used),
    .slot_lanes(slot_lanes), .slot_merged(slot_merged), .unsettled(unsettled),
    .read(read), .read_beat(read_beat), .read_data(read_data),
    .look(look), .look_slot(look_slot), .look_now(look_now), .known(known), .soon(soon),
    .known_weight(known_weight), .known_mean(known_mean),
    .s_axis_tdata(other_data), .s_axis_tkeep(other_keep), .s_axis_tvalid(other_valid),
    .s_axis_tready(other_ready), .s_axis_tlast(other_last),
    .m_axis_tdata(m_tdata), .m_axis_tkeep(m_tkeep), .m_axis_tvalid(m_tvalid),
    .m_axis_tready(m_tready), .m_axis_tlast(m_tlast)
);

olaf_queue_counters counters (
    .clk(clk), .rst(rst),
    .framing(framing), .too_long(too_long), .refused(refused), .passed(passed), .no_room(no_room),
    .stamped(stamped && !status_drop), .fate(fate), .wrong_size(wrong_size), .overflow(overflow),
    .contributors(contributors), .displaced(displaced), .ended(ended),
    .departing_contributors(departing_contributors),
    .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
    .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
    .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
    .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
    .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
    .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready)
);

endmodule

`resetall
