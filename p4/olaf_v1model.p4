// The whole chain on v1model. The queue is a device behind the port QUEUE_PORT: an answer goes there with
// the user signal in front of it, and comes back with the status in the same place. An update goes there
// as a datagram behind its signal; what departs has the class UPDATE and a status, and zeros in the rest.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"
#include "parser.p4"
#include "tables.p4"
#include "datagrams.p4"
#include "deparser.p4"

const bit<9> QUEUE_PORT = 64;
const bit<32> ETHERNET_BYTES = 14;

// The user signal as bytes, in the order of user_t: as on a board (rtl/boards/u55c).
header signal_t {
    bit<8> class;
    bit<16> group;
    bit<32> flow;
    bit<32> job;
    bit<32> cluster;
    bit<32> worker;
    bit<32> segment;
    bit<24> used;
    bit<16> active_clusters;
    bit<16> slots;
    bit<32> round_us;
    bit<16> copy;
}

struct headers_t {
    signal_t signal;
    frame_t frame;
}

parser OlafParser(packet_in packet, out headers_t headers, inout user_t user,
                  inout standard_metadata_t standard) {
    FrameParser() network;
    QueueParser() queue;

    state start {
        transition select(standard.ingress_port) {
            QUEUE_PORT: from_queue;
            default: from_network;
        }
    }

    state from_queue {
        packet.extract(headers.signal);
        user.class = headers.signal.class;
        queue.apply(packet, headers.frame, user, standard);
        transition accept;
    }

    state from_network {
        network.apply(packet, headers.frame, user, standard);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout user_t user) {
    apply { }
}

control OlafIngress(inout headers_t headers, inout user_t user, inout standard_metadata_t standard) {
    Identify() identify;
    Unwrap() unwrap;
    bit<9> egress = 0;
    bit<1> wired = 0;

    action no_wire() {
        wired = 0;
    }

    action wire(bit<9> port) {
        wired = 1;
        egress = port;
    }

    // The switch is a bump in a wire: what comes in at a port leaves by the port that belongs to it. Updates
    // that come from the queue leave by the port of the link that the queue is for.
    table wires {
        key = { standard.ingress_port: exact; }
        actions = { wire; no_wire; }
        default_action = no_wire();
        size = 64;
    }

    apply {
        wires.apply();
        if (headers.signal.isValid()) {
            user.class = headers.signal.class;
            user.group = headers.signal.group;
            user.used = headers.signal.used;
            user.active_clusters = headers.signal.active_clusters;
            user.slots = headers.signal.slots;
            user.round_us = headers.signal.round_us;
            if (headers.signal.class == ANSWER) {
                standard.mcast_grp = headers.signal.group;
            } else if (user.class == UPDATE && wired == 1) {
                standard.egress_spec = egress;
            } else {
                mark_to_drop(standard);
            }
            headers.signal.setInvalid();
        } else {
            // The queue sends nothing without a signal.
            if (wired == 0 || standard.ingress_port == QUEUE_PORT) {
                mark_to_drop(standard);
            } else {
                standard.egress_spec = egress;
                identify.apply(headers.frame, user);
                // The queue refuses an update with bytes behind its lanes, so that it bypasses.
                if (user.class != BYPASS && headers.frame.ipv4.isValid()
                    && headers.frame.udp.isValid()
                    && (ETHERNET_BYTES + (bit<32>) headers.frame.ipv4.total_length
                            == standard.packet_length
                        || (user.class == ANSWER
                            && ETHERNET_BYTES + (bit<32>) headers.frame.ipv4.total_length
                                < standard.packet_length))) {
                    hash(user.flow, HashAlgorithm.crc32, 32w0,
                         { headers.frame.ipv4.source, headers.frame.ipv4.destination,
                           headers.frame.ipv4.protocol, headers.frame.udp.source,
                           headers.frame.udp.destination },
                         64w0x100000000);
                    headers.signal.setValid();
                    headers.signal.class = user.class;
                    headers.signal.group = user.group;
                    headers.signal.flow = user.flow;
                    headers.signal.job = user.job;
                    headers.signal.cluster = user.cluster;
                    headers.signal.worker = user.worker;
                    headers.signal.segment = user.segment;
                    headers.signal.used = 0;
                    headers.signal.active_clusters = 0;
                    headers.signal.slots = 0;
                    headers.signal.round_us = 0;
                    headers.signal.copy = 0;
                    standard.egress_spec = QUEUE_PORT;
                    unwrap.apply(headers.frame, user);
                } else {
                    user.class = BYPASS;
                }
            }
        }
    }
}

control OlafEgress(inout headers_t headers, inout user_t user, inout standard_metadata_t standard) {
    Stamp() stamp;
    Readdress() readdress;
    Wrap() wrap;
    bit<1> found = 0;

    apply {
        // What is on its way to the queue has its signal.
        if (user.class != BYPASS && !headers.signal.isValid()) {
            if (user.class == ANSWER) {
                user.copy = standard.egress_rid;
                stamp.apply(headers.frame, user);
                readdress.apply(headers.frame, user, found);
            } else {
                wrap.apply(headers.frame, found);
            }
            if (found == 0) {
                mark_to_drop(standard);
            }
        }
    }
}

control Compute(inout headers_t headers, inout user_t user) {
    apply { }
}

control OlafDeparser(packet_out packet, in headers_t headers) {
    FrameDeparser() frames;

    apply {
        packet.emit(headers.signal);
        frames.apply(packet, headers.frame);
    }
}

V1Switch(OlafParser(), Verify(), OlafIngress(), OlafEgress(), Compute(), OlafDeparser()) main;
