// What `fp_div` promises. This file is read inside `fp_div`, in a small format.
//
// Task `control`: induction, for any number of cycles. Task `exact`: one division from a reset on, with any
// operands; every division begins in the state that a reset leaves, so one is as good as all.

localparam SIZE = EXPONENT + FRACTION;
localparam [SIZE-1:0] INFINITY = {EXPONENT_MAX, {FRACTION{1'b0}}};
// The most cycles between two states in which operands can be taken, with a sink that is ready: places that an
// operand moves, digits, places that the quotient moves.
localparam MOVES = FRACTION + 1;
localparam LONGEST = MOVES + CYCLES + MOVES + 2;

reg past = 0, past_waits, past_rst, past_took, past_soon, past_abandon;
reg [SIZE:0] past_quotient;
always @(posedge clk) begin
    past <= 1;
    past_rst <= rst;
    past_waits <= m_valid && !m_ready && !abandon;
    past_soon <= m_soon;
    past_abandon <= abandon;
    past_took <= s_valid && s_ready;
    past_quotient <= quotient;
end

// A quotient waits unchanged until it is taken.
always @* if (past && !past_rst && past_waits) stays: assert (m_valid && quotient == past_quotient);
// One division at a time: a unit that has a quotient takes no operands; what was taken is busy.
always @* begin
    single: assert (!(s_ready && m_valid) || abandon);
    if (past && !past_rst && past_took) busy: assert (!s_ready || abandon);
    if (past && !past_rst && past_abandon && !past_took) gone: assert (s_ready && !m_valid);
    if (past && !past_rst && past_soon && !past_abandon) there: assert (m_valid);
    legal: assert (state_reg <= DONE);
end

// A bound on the cycles. `busy_for` counts those since the operands were taken, as long as no quotient is there.
reg [7:0] busy_for = 0;
always @(posedge clk)
    busy_for <= rst || (s_ready && s_valid) || state_reg == IDLE || state_reg == DONE ? 8'd0 : busy_for + 1'b1;
// Leading zeros of a significand.
function [7:0] zeros_of(input [SIGNIFICAND-1:0] significand);
    integer i;
    begin
        zeros_of = SIGNIFICAND;
        for (i = 0; i < SIGNIFICAND; i = i + 1)
            if (significand[i]) zeros_of = SIGNIFICAND - 1 - i;
    end
endfunction
wire [7:0] zeros_a = zeros_of(remainder_reg[SIGNIFICAND-1:0]);
wire [7:0] zeros_b = zeros_of(divisor_reg);
wire [7:0] most_zeros = zeros_a > zeros_b ? zeros_a : zeros_b;
// Places that the quotient has yet to move.
wire signed [SIGNED-1:0] down = one - exponent_reg;
wire [7:0] shifts = !subnormal ? 8'd0 : vanishes ? 8'd1 : {1'b0, down};
wire signed [SIGNIFICAND+1:0] remains = remainder_reg;
wire signed [SIGNIFICAND+1:0] twice = {1'b0, divisor_reg, 1'b0};
always @* begin
    bounded: assert (busy_for < LONGEST);
    // What makes the bound inductive.
    if (state_reg == NORMALISE) begin
        assert (remainder_reg != 0 && divisor_reg != 0 && remainder_reg[SIGNIFICAND+1:SIGNIFICAND] == 0);
        assert (busy_for + most_zeros <= FRACTION);
    end
    if (state_reg == DIVIDE) begin
        assert (left_reg != 0 && left_reg <= CYCLES && divisor_reg[SIGNIFICAND-1]);
        assert (busy_for <= MOVES + CYCLES - left_reg);
        assert (remains >= -twice && remains < twice);
    end
    if (state_reg == ROUND) assert (busy_for + shifts <= MOVES + CYCLES + MOVES);
end

`ifdef EXACT
// The operands of the one division.
(* anyconst *) reg [SIZE:0] x;
(* anyconst *) reg [SIZE:0] y;
always @* assume (a == x && b == y);
always @* assume (rst == !past && !abandon);

wire x_nan = x[SIZE-1:0] > INFINITY;
wire y_nan = y[SIZE-1:0] > INFINITY;
wire x_infinite = x[SIZE-1:0] == INFINITY;
wire y_infinite = y[SIZE-1:0] == INFINITY;
wire x_zero = x[SIZE-1:0] == 0;
wire y_zero = y[SIZE-1:0] == 0;

// A finite number is an integer multiple of the smallest subnormal one, which is 2^-UNIT.
localparam UNIT = (1 << (EXPONENT - 1)) - 2 + FRACTION;
localparam LARGE = 2*((1 << EXPONENT) + FRACTION) + UNIT;
function [LARGE-1:0] units(input [SIZE-1:0] number);
    if (number[SIZE-1:FRACTION] == 0) units = number[FRACTION-1:0];
    else units = {1'b1, number[FRACTION-1:0]} << (number[SIZE-1:FRACTION] - 1);
endfunction

// Is the quotient the nearest number to x / y? Both sides are multiplied by y, and doubled, so that half a
// step is a whole number.
wire [SIZE-1:0] size = quotient[SIZE-1:0];
wire [LARGE-1:0] beyond = units(INFINITY - 1) + units(INFINITY - 1) - units(INFINITY - 2);
wire [LARGE-1:0] mine = size == INFINITY ? beyond : units(size);
wire [LARGE-1:0] above = size == INFINITY - 1 ? beyond : units(size + 1'b1);
wire [LARGE-1:0] exact = units(x[SIZE-1:0]) << (UNIT + 1);
wire [LARGE-1:0] middle_below = (mine + units(size - 1'b1)) * units(y[SIZE-1:0]);
wire [LARGE-1:0] middle_above = (mine + above) * units(y[SIZE-1:0]);
wire even = !quotient[0];

always @* if (m_valid && past) begin
    if (x_nan || y_nan || (x_infinite && y_infinite) || (x_zero && y_zero)) begin
        one_nan: assert (quotient == NAN);
    end else begin
        right_sign: assert (quotient[SIZE] == (x[SIZE] != y[SIZE]));
        if (x_infinite || y_zero) infinite: assert (size == INFINITY);
        else if (y_infinite || x_zero) zero: assert (size == 0);
        else begin
            number: assert (size <= INFINITY);
            if (size != 0) not_too_large: assert (even ? exact >= middle_below : exact > middle_below);
            if (size != INFINITY)
                not_too_small: assert (even ? exact <= middle_above : exact < middle_above);
        end
    end
end
`endif

always @(posedge clk) if (past && !rst) begin
    slowest: cover (state_reg == ROUND && busy_for == LONGEST - 2);
    abandoned: cover (state_reg == DIVIDE && past_abandon && past_took);
    waits: cover (m_valid && past_waits && m_ready && quotient[SIZE-1:0] != 0);
    overflow: cover (state_reg == ROUND && overflows);
    small: cover (state_reg == ROUND && !subnormal && field == 0 && up && lost_reg);
    nothing: cover (state_reg == ROUND && !subnormal && rounded == 0);
end
