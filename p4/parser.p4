// Finds Olaf's headers. Whatever is not Olaf's keeps its bytes behind the last header that was found.
//
// FrameParser reads what comes from the network. QueueParser reads what comes from the queue, where an
// update is a datagram without Ethernet, IPv4 and UDP.

#ifndef OLAF_PARSER
#define OLAF_PARSER

#include "headers.p4"

// From the first byte of the message. A message that is shorter than its header ends the parser with an
// error; the header that did not fit is not valid then.
parser MessageParser(packet_in packet, inout frame_t frame) {
    state start {
        packet.extract(frame.olaf);
        transition select(frame.olaf.magic, frame.olaf.version, frame.olaf.flags, frame.olaf.kind) {
            (OLAF_MAGIC, OLAF_VERSION, 0, KIND_UPDATE): update;
            (OLAF_MAGIC, OLAF_VERSION, 0, KIND_ACKNOWLEDGEMENT): answer;
            (OLAF_MAGIC, OLAF_VERSION, 0, KIND_MODEL): answer;
            default: accept;
        }
    }

    state update {
        packet.extract(frame.update);
        transition accept;
    }

    state answer {
        packet.extract(frame.answer);
        transition accept;
    }
}

parser FrameParser(packet_in packet, out frame_t frame, inout user_t user,
                   inout standard_metadata_t standard) {
    MessageParser() messages;

    state start {
        packet.extract(frame.ethernet);
        transition select(frame.ethernet.ether_type) {
            ETHER_TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    // Only a whole datagram is Olaf's: no options, no fragment.
    state ipv4 {
        packet.extract(frame.ipv4);
        transition select(frame.ipv4.version, frame.ipv4.words, frame.ipv4.more_fragments,
                          frame.ipv4.fragment_offset, frame.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    // A frame whose message has no whole header bypasses the queue.
    state udp {
        packet.extract(frame.udp);
        messages.apply(packet, frame);
        transition accept;
    }
}

// The user signal says which frames are departing updates.
parser QueueParser(packet_in packet, out frame_t frame, inout user_t user,
                   inout standard_metadata_t standard) {
    FrameParser() frames;
    MessageParser() messages;

    state start {
        transition select(user.class) {
            UPDATE: departing;
            default: whole;
        }
    }

    state departing {
        messages.apply(packet, frame);
        transition accept;
    }

    state whole {
        frames.apply(packet, frame, user, standard);
        transition accept;
    }
}

#endif
