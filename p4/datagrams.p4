// Headers around an update. The queue works on datagrams that begin with Olaf's header: Unwrap takes
// Ethernet, IPv4 and UDP off before the queue, Wrap puts new ones on behind it.
//
// differs: OLAF §7 forwards the outgoing update unmodified. A merged update is a new datagram here: of
// several workers, none is its sender.

#ifndef OLAF_DATAGRAMS
#define OLAF_DATAGRAMS

#include "headers.p4"

// Leaves an update alone with its message. Every other frame stays whole.
control Unwrap(inout frame_t frame, in user_t user) {
    apply {
        if (user.class == UPDATE) {
            frame.ethernet.setInvalid();
            frame.ipv4.setInvalid();
            frame.udp.setInvalid();
        }
    }
}

// Gives a departing update its headers, towards the server of its job.
control Wrap(inout frame_t frame, out bit<1> found) {
    bit<1> known = 0;
    bit<48> source_mac = 0;
    bit<32> source_ip = 0;
    bit<16> source_port = 0;
    bit<48> mac = 0;
    bit<32> ip = 0;
    bit<16> port = 0;
    bit<8> class = 0;
    bit<16> bytes = 0;
    bit<32> sum = 0;

    action no_server() {
        known = 0;
    }

    // The class of service stands in the entry, because the queue keeps none: 0 in software, or 2
    // (ECT(0)) where workers send with `ecn`.
    action to_server(bit<48> from_mac, bit<32> from_ip, bit<16> from_port, bit<48> to_mac,
                     bit<32> to_ip, bit<16> to_port, bit<8> traffic_class) {
        known = 1;
        source_mac = from_mac;
        source_ip = from_ip;
        source_port = from_port;
        mac = to_mac;
        ip = to_ip;
        port = to_port;
        class = traffic_class;
    }

    table servers {
        key = { frame.olaf.job: exact; }
        actions = { to_server; no_server; }
        default_action = no_server();
        size = 1024;
    }

    apply {
        found = 0;
        // More lanes would overflow the lengths. The queue has no such update.
        if (frame.olaf.isValid() && frame.update.isValid()
            && frame.update.lanes != 0 && frame.update.lanes <= MAX_SEGMENT_LANES) {
            servers.apply();
            if (known == 1) {
                found = 1;
                // The message alone; UDP and IPv4 add their headers.
                bytes = UPDATE_BYTES[15:0] + (frame.update.lanes[13:0] ++ 2w0);

                frame.ethernet.setValid();
                frame.ethernet.destination = mac;
                frame.ethernet.source = source_mac;
                frame.ethernet.ether_type = ETHER_TYPE_IPV4;

                frame.ipv4.setValid();
                frame.ipv4.version = 4;
                frame.ipv4.words = 5;
                frame.ipv4.traffic_class = class;
                frame.ipv4.total_length = IPV4_BYTES[15:0] + UDP_BYTES[15:0] + bytes;
                // A datagram that must not be fragmented needs no number (RFC 6864).
                frame.ipv4.identification = 0;
                frame.ipv4.reserved = 0;
                frame.ipv4.do_not_fragment = 1;
                frame.ipv4.more_fragments = 0;
                frame.ipv4.fragment_offset = 0;
                frame.ipv4.time_to_live = TIME_TO_LIVE;
                frame.ipv4.protocol = PROTOCOL_UDP;
                frame.ipv4.source = source_ip;
                frame.ipv4.destination = ip;
                sum = (bit<32>) (8w0x45 ++ class) + (bit<32>) frame.ipv4.total_length
                    + 0x4000 + (bit<32>) (TIME_TO_LIVE ++ PROTOCOL_UDP)
                    + (bit<32>) source_ip[31:16] + (bit<32>) source_ip[15:0]
                    + (bit<32>) ip[31:16] + (bit<32>) ip[15:0];
                sum = (bit<32>) sum[31:16] + (bit<32>) sum[15:0];
                sum = (bit<32>) sum[31:16] + (bit<32>) sum[15:0];
                frame.ipv4.checksum = ~sum[15:0];

                frame.udp.setValid();
                frame.udp.source = source_port;
                frame.udp.destination = port;
                frame.udp.length = UDP_BYTES[15:0] + bytes;
                // None: the lanes are not within reach. RFC 768 allows it over IPv4.
                frame.udp.checksum = 0;
            }
        }
    }
}

#endif
