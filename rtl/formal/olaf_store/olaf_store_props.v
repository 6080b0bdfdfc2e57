// What the store promises: no beat and no header is overwritten before it was given back, or lost. This file is
// read inside `olaf_store`.

// The writer, `olaf_ingress`: a beat that is written was taken in two cycles before, when there was room.
reg room_1 = 0, room_2 = 0;
always @(posedge clk) {room_2, room_1} <= rst ? 2'd0 : {room_1, room_reg};
always @* assume (!write || room_2);

// The reader, `olaf_arrivals`: it takes headers that are there, and gives back beats of whole updates.
(* anyseq *) reg [ADDRESS-1:0] gives;
reg [ADDRESS-1:0] given = 0;
wire [ADDRESS-1:0] whole = frame_reg - base;
always @(posedge clk) given <= rst ? 0 : given + gives;
always @* begin
    assume (base == given);
    assume (gives <= whole);
    assume (!take || valid);
end

// Beats inside, counted without a ring: there are never as many as would look like none.
localparam [ADDRESS+1:0] SIZE = 1 << ADDRESS;
reg [ADDRESS+1:0] inside = 0, partial = 0;

always @(posedge clk) begin
    inside <= inside + (write ? (write_last && write_drop ? -partial : 1) : 0) - gives;
    if (write) partial <= write_last ? 0 : partial + 1'b1;
    if (rst) {inside, partial} <= 0;
end
always @* begin
    assert (partial <= inside);
    assert (inside[ADDRESS-1:0] == beats);
    assert (inside - partial == {2'd0, whole});
    assert (write_reg - frame_reg == partial[ADDRESS-1:0]);
    nothing_overwritten: assert (inside < SIZE);
end

// Headers: those that came are those that were taken, and those that are inside. An update has two beats or more.
wire comes = write && write_last && !write_drop;
always @* assume (!(comes && partial == 0));
reg [6:0] waiting = 0;
always @(posedge clk) waiting <= rst ? 0 : waiting + comes - pop;
always @* begin
    no_header_lost: assert (waiting < HEADERS);
    assert (waiting[4:0] == headers);
    if (comes) assert (push);
end

// No deadlock: when all that is whole was given back, there is room for more than the longest update.
always @(posedge clk) if (!rst && inside < BEATS + 2 && waiting == 0) empty_enough: assert (inside < BEAT_ROOM);

always @(posedge clk) if (!rst) begin
    cover (inside == SIZE - 2);
    cover (write && write_last && write_drop && partial == BEATS);
    cover (take && pop && push);
    cover (write && !room_reg);
end
