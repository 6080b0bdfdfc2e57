// Writes the headers back. A header that is not valid is not written; its bytes are still behind.

#ifndef OLAF_DEPARSER
#define OLAF_DEPARSER

#include "headers.p4"

control FrameDeparser(packet_out packet, in frame_t frame) {
    apply {
        packet.emit(frame.ethernet);
        packet.emit(frame.ipv4);
        packet.emit(frame.udp);
        packet.emit(frame.olaf);
        packet.emit(frame.update);
        packet.emit(frame.answer);
    }
}

#endif
