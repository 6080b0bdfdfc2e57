// The block behind the queue for VitisNetP4 (VNP4_2 in OLAF §7): writes the status into answers, and
// the receiver into each copy. A departing update gets headers towards its server. All else passes unmodified.

#include <core.p4>
#include <xsa.p4>
#include "headers.p4"
#include "parser.p4"
#include "tables.p4"
#include "datagrams.p4"
#include "deparser.p4"

control Behind(inout frame_t frame, inout user_t user, inout standard_metadata_t standard) {
    Stamp() stamp;
    Readdress() readdress;
    Wrap() wrap;
    bit<1> found = 0;

    apply {
        if (user.class == ANSWER) {
            stamp.apply(frame, user);
            readdress.apply(frame, user, found);
            if (found == 0) {
                standard.drop = 1;
            }
        } else if (user.class == UPDATE) {
            wrap.apply(frame, found);
            if (found == 0) {
                standard.drop = 1;
            }
        }
    }
}

control BehindDeparser(packet_out packet, in frame_t frame, inout user_t user,
                       inout standard_metadata_t standard) {
    FrameDeparser() frames;

    apply {
        frames.apply(packet, frame);
    }
}

XilinxPipeline(QueueParser(), Behind(), BehindDeparser()) main;
