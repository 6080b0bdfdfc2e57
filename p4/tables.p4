// The match-action part: Identify before the queue, Stamp and Readdress behind it.

#ifndef OLAF_TABLES
#define OLAF_TABLES

#include "headers.p4"

// OLAF §7, uplink: known senders by source IP; all else bypasses. Writes class, group, job, cluster,
// worker and segment. A message that crates/olaf-wire would refuse bypasses, too.
control Identify(in frame_t frame, inout user_t user) {
    bit<8> sender = BYPASS;
    bool whole = false;

    action unknown() {
        sender = BYPASS;
    }

    action worker() {
        sender = UPDATE;
    }

    action server() {
        sender = ANSWER;
    }

    table senders {
        key = { frame.ipv4.source: exact; }
        actions = { worker; server; unknown; }
        default_action = unknown();
        size = 1024;
    }

    action no_group() {
        user.group = 0;
    }

    action in_group(bit<16> group) {
        user.group = group;
    }

    // differs: OLAF §7 maps a worker's address to its cluster. A machine may have workers of several
    // jobs and clusters, so that the message names the cluster, and the table knows its group.
    table clusters {
        key = { frame.olaf.job: exact; frame.olaf.cluster: exact; }
        actions = { in_group; no_group; }
        default_action = no_group();
        size = 1024;
    }

    apply {
        user.class = BYPASS;
        user.group = 0;
        user.flow = 0;
        user.job = 0;
        user.cluster = 0;
        user.worker = 0;
        user.segment = 0;
        if (frame.ipv4.isValid() && frame.udp.isValid() && frame.olaf.isValid()) {
            senders.apply();
            whole = (bit<32>) frame.ipv4.total_length == IPV4_BYTES + (bit<32>) frame.udp.length;
            if (sender == UPDATE && frame.update.isValid()) {
                // The same conditions as `Update::parse` in olaf-wire. A weight is finite and above 0:
                // the sign is 0, the exponent is not all ones, and not all bits are 0.
                if (whole && frame.update.lanes != 0 && frame.update.lanes <= MAX_SEGMENT_LANES
                    && (bit<32>) frame.udp.length
                        == UDP_BYTES + UPDATE_BYTES + (frame.update.lanes[29:0] ++ 2w0)
                    && frame.update.segment < frame.update.segments
                    && frame.update.generated_oldest <= frame.update.generated_newest
                    && frame.update.version_oldest <= frame.update.version_newest
                    && frame.update.contributors != 0
                    && frame.update.weight != 0 && frame.update.weight[63:63] == 0
                    && frame.update.weight[62:52] != 0x7ff) {
                    user.class = UPDATE;
                    user.segment = frame.update.segment;
                }
            } else if (sender == ANSWER && frame.answer.isValid()) {
                // The same conditions as `Answer::parse`.
                if (whole && frame.answer.lanes <= MAX_SEGMENT_LANES
                    && (frame.olaf.kind == KIND_MODEL) == (frame.answer.lanes != 0)
                    && (bit<32>) frame.udp.length
                        == UDP_BYTES + ANSWER_BYTES + (frame.answer.lanes[29:0] ++ 2w0)
                    && frame.answer.segment < frame.answer.segments
                    && (frame.answer.delivered & frame.answer.ended) == 0
                    && frame.answer.lanes <= frame.answer.parameters) {
                    user.class = ANSWER;
                    user.segment = frame.answer.segment;
                }
            }
            if (user.class != BYPASS) {
                user.job = frame.olaf.job;
                user.cluster = frame.olaf.cluster;
                user.worker = frame.olaf.worker;
                clusters.apply();
                // Group 0 is no group, on v1model, too.
                if (user.group == 0) {
                    user.class = BYPASS;
                }
            }
        }
    }
}

// OLAF §5: writes the queue's status into an answer. Of several queues on the path the answer tells
// the most crowded one and the longest round, as `QueueStatus::passing` in olaf-wire does.
control Stamp(inout frame_t frame, in user_t user) {
    bit<32> sum = 0;
    bit<32> above = 0;
    bit<32> here = 0;
    bit<16> used = 0;

    apply {
        if (frame.udp.isValid() && frame.answer.isValid()) {
            // RFC 1624, equation 3: the old words leave the sum, the new words enter it.
            sum = (bit<32>) (~frame.udp.checksum)
                + (bit<32>) (~frame.answer.active_clusters) + (bit<32>) (~frame.answer.slots)
                + (bit<32>) (~frame.answer.used)
                + (bit<32>) (~(frame.answer.switches ++ frame.answer.zero))
                + (bit<32>) (~frame.answer.round_us[31:16]) + (bit<32>) (~frame.answer.round_us[15:0]);

            // differs: OLAF §7 has 24 bits of utilization; the answer has 16.
            used = user.used[15:0];
            if (user.used[23:16] != 0) {
                used = 0xffff;
            }
            above = (bit<32>) frame.answer.active_clusters;
            if (user.slots != 0) {
                above = above * (bit<32>) user.slots;
            }
            here = (bit<32>) user.active_clusters;
            if (frame.answer.slots != 0) {
                here = here * (bit<32>) frame.answer.slots;
            }
            if (frame.answer.switches == 0 || above <= here) {
                frame.answer.active_clusters = user.active_clusters;
                frame.answer.slots = user.slots;
                frame.answer.used = used;
            }
            if (frame.answer.switches != 255) {
                frame.answer.switches = frame.answer.switches + 1;
            }
            if (frame.answer.round_us < user.round_us) {
                frame.answer.round_us = user.round_us;
            }

            // Checksum 0 means that the sender computed none.
            if (frame.udp.checksum != 0) {
                sum = sum
                    + (bit<32>) frame.answer.active_clusters + (bit<32>) frame.answer.slots
                    + (bit<32>) frame.answer.used
                    + (bit<32>) (frame.answer.switches ++ frame.answer.zero)
                    + (bit<32>) frame.answer.round_us[31:16] + (bit<32>) frame.answer.round_us[15:0];
                sum = (bit<32>) sum[31:16] + (bit<32>) sum[15:0];
                sum = (bit<32>) sum[31:16] + (bit<32>) sum[15:0];
                frame.udp.checksum = ~sum[15:0];
                if (frame.udp.checksum == 0) {
                    frame.udp.checksum = 0xffff;
                }
            }
        }
    }
}

// OLAF §7, downlink: each copy of an answer goes to one worker of the cluster's group.
control Readdress(inout frame_t frame, in user_t user, out bit<1> found) {
    bit<32> sum = 0;
    bit<32> ip_sum = 0;
    bit<32> old_ip = 0;
    bit<16> old_port = 0;
    bit<1> known = 0;
    bit<48> mac = 0;
    bit<32> ip = 0;
    bit<16> port = 0;

    action nobody() {
        known = 0;
    }

    action to(bit<48> to_mac, bit<32> to_ip, bit<16> to_port) {
        known = 1;
        mac = to_mac;
        ip = to_ip;
        port = to_port;
    }

    // A group's copies are numbered. Without a replicator there is copy 0 alone, and its address may be
    // a multicast address.
    table receivers {
        key = { user.group: exact; user.copy: exact; }
        actions = { to; nobody; }
        default_action = nobody();
        size = 4096;
    }

    apply {
        found = 0;
        if (frame.ethernet.isValid() && frame.ipv4.isValid() && frame.udp.isValid()) {
            receivers.apply();
            if (known == 1) {
                found = 1;
                old_ip = frame.ipv4.destination;
                old_port = frame.udp.destination;
                frame.ethernet.destination = mac;
                frame.ipv4.destination = ip;
                frame.udp.destination = port;

                ip_sum = (bit<32>) (~old_ip[31:16]) + (bit<32>) (~old_ip[15:0])
                    + (bit<32>) ip[31:16] + (bit<32>) ip[15:0];
                sum = ip_sum + (bit<32>) (~frame.ipv4.checksum);
                sum = (bit<32>) sum[31:16] + (bit<32>) sum[15:0];
                sum = (bit<32>) sum[31:16] + (bit<32>) sum[15:0];
                frame.ipv4.checksum = ~sum[15:0];

                // The UDP checksum counts the addresses, too.
                if (frame.udp.checksum != 0) {
                    sum = ip_sum + (bit<32>) (~frame.udp.checksum)
                        + (bit<32>) (~old_port) + (bit<32>) port;
                    sum = (bit<32>) sum[31:16] + (bit<32>) sum[15:0];
                    sum = (bit<32>) sum[31:16] + (bit<32>) sum[15:0];
                    frame.udp.checksum = ~sum[15:0];
                    if (frame.udp.checksum == 0) {
                        frame.udp.checksum = 0xffff;
                    }
                }
            }
        }
    }
}

#endif
