// `rtl/multiply_add.v` in DSP blocks of UltraScale+. Yosys 0.70 multiplies in a DSP48E2, but leaves the addition behind
// the product to LUTs: it knows the adder of the 7 series' block alone. Vivado's manual says that it uses the adder, so it
// reads `rtl/multiply_add.v`; we could not run it. `formal/scaled_sum` proves that both files do the same for an f32
// lane; `tb/` simulates the netlists, also of the f64 adder.

`resetall
`default_nettype none

module multiply_add #(
    parameter A = 27,
    parameter B = 18,
    parameter SUM = 48
) (
    input  wire signed [A-1:0] a,
    input  wire signed [B-1:0] b,
    input  wire [SUM-1:0]      addend,
    output wire [SUM-1:0]      sum
);
// A column of blocks: each takes CHUNK bits of `a`, and adds what the block below it has above its CHUNK bits.
localparam CHUNK = 17;
localparam BLOCKS = (A + CHUNK - 2) / CHUNK;
localparam LAST = CHUNK * (BLOCKS - 1);
// A wider `b` is cut into its lower LOWER bits and the rest.
localparam LOWER = 26;
// Operands as wide as the ports; signs are extended.
wire signed [26:0] a_wide = a;
wire signed [26:0] b_wide = b;
genvar i;
generate
    if (A <= 27 && B <= 18 && SUM <= 48) begin : g_block
        wire [47:0] p;
        wire [47:0] top;
        dsp_block block (
            .a(a_wide), .b(b_wide[17:0]), .c({{48-SUM{1'b0}}, addend}), .below(48'd0), .p(p), .above(top)
        );
        assign sum = p[SUM-1:0];
    end else if (BLOCKS > 1 && B <= 27 && SUM > LAST && SUM < LAST + 48) begin : g_column
        wire [48*(BLOCKS+1)-1:0] column;
        assign column[47:0] = 48'd0;
        for (i = 0; i < BLOCKS; i = i + 1) begin : g_chunk
            wire [47:0] p, c;
            wire signed [17:0] chunk;
            if (i < BLOCKS - 1) begin : g_lower
                // A chunk has no sign, so its highest bit is 0.
                assign chunk = {1'b0, a[CHUNK*i +: CHUNK]};
                assign c = {{48-CHUNK{1'b0}}, addend[CHUNK*i +: CHUNK]};
                assign sum[CHUNK*i +: CHUNK] = p[CHUNK-1:0];
            end else begin : g_last
                assign chunk = $signed(a[A-1:LAST]);
                assign c = {{48-SUM+LAST{1'b0}}, addend[SUM-1:LAST]};
                assign sum[SUM-1:LAST] = p[SUM-LAST-1:0];
            end
            dsp_block #(.ON_TOP(i > 0)) block (
                .a(b_wide), .b(chunk), .c(c), .below(column[48*i +: 48]), .p(p), .above(column[48*(i+1) +: 48])
            );
        end
    end else if (B > 27 && SUM > LOWER) begin : g_halves
        wire [SUM-1:0] low;
        multiply_add #(.A(A), .B(LOWER + 1), .SUM(SUM)) lower (
            .a(a), .b({1'b0, b[LOWER-1:0]}), .addend(addend), .sum(low)
        );
        multiply_add #(.A(A), .B(B - LOWER), .SUM(SUM - LOWER)) upper (
            .a(a), .b(b[B-1:LOWER]), .addend(low[SUM-1:LOWER]), .sum(sum[SUM-1:LOWER])
        );
        assign sum[LOWER-1:0] = low[LOWER-1:0];
    end else begin : g_lut
        wire signed [SUM-1:0] product = a * b;
        assign sum = product + addend;
    end
endgenerate

endmodule

// One block, without registers.
module dsp_block #(
    // 1: it adds what the block below has above its lowest 17 bits.
    parameter ON_TOP = 0
) (
    input  wire [26:0] a,
    input  wire [17:0] b,
    input  wire [47:0] c,
    // The sum of the block below, on the wire that only blocks have; and its own, on that wire.
    input  wire [47:0] below,
    output wire [47:0] p,
    output wire [47:0] above
);
// W, Z, Y and X are added. X and Y are the halves of the product; Z and W are nothing, C, or `below`.
localparam [8:0] OPMODE = ON_TOP ? 9'b11_101_01_01 : 9'b00_011_01_01;
DSP48E2 #(
    .ACASCREG(0), .ADREG(0), .ALUMODEREG(0), .AREG(0), .BCASCREG(0), .BREG(0), .CARRYINREG(0), .CARRYINSELREG(0),
    .CREG(0), .DREG(0), .INMODEREG(0), .MREG(0), .OPMODEREG(0), .PREG(0),
    .A_INPUT("DIRECT"), .B_INPUT("DIRECT"), .USE_MULT("MULTIPLY"), .USE_SIMD("ONE48"), .AMULTSEL("A"), .BMULTSEL("B")
) block (
    .A({{3{a[26]}}, a}), .B(b), .C(c), .D(27'd0), .ACIN(30'd0), .BCIN(18'd0), .PCIN(below),
    .INMODE(5'd0), .ALUMODE(4'b0000), .OPMODE(OPMODE), .CARRYINSEL(3'd0), .CARRYIN(1'b0),
    .P(p), .PCOUT(above)
);

endmodule

`resetall
