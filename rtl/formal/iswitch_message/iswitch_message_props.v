// What a message is, said byte by byte as olaf-wire/src/iswitch/reading.rs says it: for each action its length, then its
// fields. This file is read inside `iswitch_message`, which has no state.

function [7:0] byte_at(input [255:0] bytes, input integer at);
    byte_at = bytes >> 8*at;
endfunction
function [31:0] number_at(input [255:0] bytes, input integer at);
    number_at = {byte_at(bytes, at), byte_at(bytes, at + 1), byte_at(bytes, at + 2), byte_at(bytes, at + 3)};
endfunction

// Bytes 1 to 3 of the header without a meaning are 0: what is read is written again and compared.
wire [7:0] first = byte_at(head, 0), third = byte_at(head, 2), fourth = byte_at(head, 3);
reg is_one;
always @* begin
    is_one = 0;
    if (length != 0) case (first)
        1: begin
            if (length == 36) is_one = 1;
            if (length == 40) is_one = has_number;
            if (third != 3 || fourth > 1) is_one = 0;
            if (number_at(head, 16) < 1 || number_at(head, 16) > 2047) is_one = 0;
            if (number_at(head, 20) < 1 || number_at(head, 20) > number_at(head, 16)) is_one = 0;
            if (number_at(head, 24) < 1) is_one = 0;
        end
        2: is_one = length == 12 && third == 0 && fourth == 0;
        3: is_one = length == 4 && third == 0 && fourth == 0;
        4: is_one = length == 8 && third == 0 && fourth == 0
            && number_at(head, 4) >= 1 && number_at(head, 4) <= 2047;
        // The last of 64 packets has an index, too: the first one is at most 2^44 - 1 - 64.
        5, 6: is_one = length == 24 && third == 0 && fourth == 0 && number_at(head, 8) <= 32'hfff
            && (number_at(head, 8) < 32'hfff || number_at(head, 12) <= 32'hffffffbf);
        7: is_one = length == 16 && fourth == 0 && third >= 1 && third <= 8;
        8: begin
            if (fourth == 1) is_one = length == 48 || (length == 52 && has_number);
            else is_one = length == 16 && fourth >= 2 && fourth <= 8;
            if (third < 1 || third > 8 || number_at(head, 8) > 32'hfff) is_one = 0;
        end
        default: is_one = 0;
    endcase
end

wire [3:0] verbs = verb[0] + verb[1] + verb[2] + verb[3] + verb[4] + verb[5] + verb[6] + verb[7];
always @* begin
    exactly: assert (well_formed == is_one);
    one_verb: assert (verbs <= 1 && (!well_formed || verbs == 1));
    if (well_formed) begin
        its_verb: assert (verb == 1 << (first - 1));
        about: assert (generation == byte_at(head, 1));
        if (verb[0] || verb[1]) who: assert (job == number_at(head, 4) && session == number_at(head, 8));
        if (verb[0]) begin
            wants: assert (rank == number_at(head, 12) && workers == number_at(head, 16)
                           && contributors == number_at(head, 20) && from_switch == (fourth == 1));
            has: assert (packet_floats == number_at(head, 24) && operations == number_at(head, 28));
            limits: assert (contributors >= 1 && contributors <= workers && packet_floats != 0);
        end
        if (verb[3]) its_h: assert (h == number_at(head, 4) && h != 0);
        if (verb[4] || verb[5] || verb[7])
            its_index: assert (index == {number_at(head, 8), number_at(head, 12)});
        if (verb[4] || verb[5]) begin
            its_mask: assert (mask == {number_at(head, 16), number_at(head, 20)});
            no_overflow: assert (index + 44'd63 > index);
        end
    end
end

always @* begin
    numbered: cover (well_formed && length == 40 && workers == 2047 && contributors == 2047);
    short_join: cover (well_formed && length == 36 && from_switch);
    no_number: cover (!well_formed && length == 40 && first == 1 && third == 3 && workers == 2 && contributors == 1
                      && packet_floats == 1 && fourth == 0);
    long_ack: cover (well_formed && length == 52);
    last_packets: cover (well_formed && verb[5] && index == 44'hfffffffffbf);
    each_other: cover (well_formed && verb[6] && third == 8);
end
