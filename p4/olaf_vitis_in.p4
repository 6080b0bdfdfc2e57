// The block before the queue for VitisNetP4 (VNP4_1 in OLAF §7): writes the identity into the user
// signal, and takes Ethernet, IPv4 and UDP off updates.

#include <core.p4>
#include <xsa.p4>
#include "headers.p4"
#include "parser.p4"
#include "tables.p4"
#include "datagrams.p4"
#include "deparser.p4"

control Before(inout frame_t frame, inout user_t user, inout standard_metadata_t standard) {
    Identify() identify;
    Unwrap() unwrap;
    Checksum<bit<32>>(HashAlgorithm_t.CRC32) crc;

    apply {
        identify.apply(frame, user);
        if (user.class != BYPASS && frame.ipv4.isValid() && frame.udp.isValid()) {
            crc.apply({ frame.ipv4.source, frame.ipv4.destination, frame.ipv4.protocol,
                        frame.udp.source, frame.udp.destination },
                      user.flow);
        }
        unwrap.apply(frame, user);
    }
}

control BeforeDeparser(packet_out packet, in frame_t frame, inout user_t user,
                       inout standard_metadata_t standard) {
    FrameDeparser() frames;

    apply {
        frames.apply(packet, frame);
    }
}

XilinxPipeline(FrameParser(), Before(), BeforeDeparser()) main;
