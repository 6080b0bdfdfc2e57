/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-queue.h"

#include "olaf-error.h"
#include "olaf-frame.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/log.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("OlafQueue");

NS_OBJECT_ENSURE_REGISTERED(OlafQueue);

TypeId
OlafQueue::GetTypeId()
{
    // With its item's name, as helpers that set a device's queue look for it.
    static TypeId tid =
        TypeId("ns3::OlafQueue<Packet>")
            .SetParent<Queue<Packet>>()
            .SetGroupName("Olaf")
            .AddConstructor<OlafQueue>()
            .AddAttribute("Kind",
                          "The discipline: olaf, fifo, or another that libolaf knows. Read with "
                          "all others when the first packet comes.",
                          StringValue("olaf"),
                          MakeStringAccessor(&OlafQueue::m_kind),
                          MakeStringChecker())
            .AddAttribute("Slots",
                          "Updates the queue holds.",
                          UintegerValue(8),
                          MakeUintegerAccessor(&OlafQueue::m_slots),
                          MakeUintegerChecker<uint32_t>(1, 1 << 20))
            .AddAttribute("Gate",
                          "Threshold of the reward gate (OLAF section 3); below 0: off.",
                          DoubleValue(-1.0),
                          MakeDoubleAccessor(&OlafQueue::m_gate),
                          MakeDoubleChecker<double>())
            .AddAttribute("ActiveWindow",
                          "A cluster heard within this time is active (OLAF section 5).",
                          TimeValue(Seconds(1)),
                          MakeTimeAccessor(&OlafQueue::m_active),
                          MakeTimeChecker(NanoSeconds(1)))
            .AddAttribute("MaxHops",
                          "Switches an update may pass.",
                          UintegerValue(16),
                          MakeUintegerAccessor(&OlafQueue::m_maxHops),
                          MakeUintegerChecker<uint32_t>(1, 255))
            .AddAttribute("ControlLimit",
                          "Packets that are no updates and may wait.",
                          UintegerValue(4096),
                          MakeUintegerAccessor(&OlafQueue::m_controlLimit),
                          MakeUintegerChecker<uint32_t>())
            .AddAttribute("HeadKeepsSlot",
                          "Whether the update on the wire keeps its slot until its last bit has "
                          "left, as in hardware (OLAF section 12.1), or has left the queue when "
                          "its first bit does, as ns-3's queues have it.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&OlafQueue::m_headKeepsSlot),
                          MakeBooleanChecker())
            .AddTraceSource("Merge",
                            "A packet was added to one that waits.",
                            MakeTraceSourceAccessor(&OlafQueue::m_traceMerge),
                            "ns3::Packet::TracedCallback")
            .AddTraceSource("Replace",
                            "A packet took the place of one that waited.",
                            MakeTraceSourceAccessor(&OlafQueue::m_traceReplace),
                            "ns3::Packet::TracedCallback")
            .AddTraceSource("Filter",
                            "A packet's reward was too far below that of one that waits.",
                            MakeTraceSourceAccessor(&OlafQueue::m_traceFilter),
                            "ns3::Packet::TracedCallback")
            .AddTraceSource("Taken",
                            "An update came straight from its worker and was taken in: its cluster "
                            "may be told. The packet is the datagram, without lower headers.",
                            MakeTraceSourceAccessor(&OlafQueue::m_traceTaken),
                            "ns3::Packet::TracedCallback");
    return tid;
}

OlafQueue::OlafQueue()
{
    NS_LOG_FUNCTION(this);
}

OlafQueue::~OlafQueue()
{
    NS_LOG_FUNCTION(this);
}

bool
OlafQueue::Enqueue(Ptr<Packet> packet)
{
    NS_LOG_FUNCTION(this << packet);
    olaf_queue* engine = Engine();
    OlafFrame frame;
    if (!frame.Open(packet))
    {
        return EnqueueControl(packet);
    }
    Ptr<Packet> payload = frame.GetDatagram()->Copy();
    OlafHeader header;
    payload->RemoveHeader(header);
    if (header.GetResult() == OLAF_RESULT_MALFORMED)
    {
        DropBeforeEnqueue(packet);
        return false;
    }
    if (header.GetResult() != OLAF_RESULT_OK)
    {
        return EnqueueControl(packet);
    }

    std::vector<uint8_t> lanes(payload->GetSize());
    payload->CopyData(lanes.data(), lanes.size());
    olaf_arrival arrival{};
    arrival.update = header.GetUpdate();
    arrival.bytes = packet->GetSize();
    OlafSharersTag tag;
    frame.GetDatagram()->PeekPacketTag(tag);
    arrival.contributors = tag.GetSharers().data();
    arrival.contributor_count = tag.GetSharers().size();
    arrival.lanes = lanes.data();
    arrival.lane_count = header.GetLaneCount();
    olaf_outcome outcome{};
    OLAF_MUST(olaf_queue_arrive(engine, Simulator::Now().GetNanoSeconds(), &arrival, &outcome));
    NS_LOG_LOGIC("fate " << outcome.fate << " in entry " << outcome.entry);

    if (outcome.fate == OLAF_FATE_DROPPED || outcome.fate == OLAF_FATE_REJECTED)
    {
        DropBeforeEnqueue(packet);
        return false;
    }
    switch (outcome.fate)
    {
    case OLAF_FATE_EVICTED:
        // First, so that ns-3's queue never holds more than the engine's.
        Evict(outcome);
        [[fallthrough]];
    case OLAF_FATE_APPENDED: {
        // A copy: what waits here is written anew when it leaves, and others may hold the packet.
        Iterator place;
        const bool enqueued = DoEnqueue(GetContainer().end(), packet->Copy(), place);
        NS_ASSERT_MSG(enqueued, "the engine has a slot and the queue has not");
        m_waiting[outcome.entry] = place;
        break;
    }
    case OLAF_FATE_MERGED:
        m_traceMerge(packet);
        break;
    case OLAF_FATE_REPLACED:
        Rewrite(*m_waiting.at(outcome.entry), packet);
        m_traceReplace(packet);
        break;
    default:
        m_traceFilter(packet);
        break;
    }
    if (outcome.notify)
    {
        m_traceTaken(frame.GetDatagram());
    }
    return true;
}

Ptr<Packet>
OlafQueue::Dequeue()
{
    NS_LOG_FUNCTION(this);
    HasLeft(nullptr);
    bool control = true;
    const std::optional<Iterator> place = Begin(control);
    if (!place)
    {
        return nullptr;
    }
    Ptr<Packet> packet = DoDequeue(*place);
    if (!control)
    {
        m_onWire = true;
        m_begun = Simulator::Now();
        if (!m_headKeepsSlot)
        {
            OLAF_MUST(olaf_queue_end(Engine()));
        }
    }
    return packet;
}

Ptr<Packet>
OlafQueue::Remove()
{
    NS_LOG_FUNCTION(this);
    // Who throws away what waits does not wait for what is on the wire.
    HasLeft(nullptr);
    bool control = true;
    const std::optional<Iterator> place = Begin(control);
    if (!place)
    {
        return nullptr;
    }
    if (!control)
    {
        OLAF_MUST(olaf_queue_discard(Engine()));
    }
    return DoRemove(*place);
}

Ptr<const Packet>
OlafQueue::Peek() const
{
    NS_LOG_FUNCTION(this);
    if (!m_control.empty())
    {
        return DoPeek(m_control.front());
    }
    olaf_entry entry{};
    const olaf_result result = olaf_queue_peek(Engine(), &entry);
    if (result == OLAF_RESULT_NOTHING)
    {
        return nullptr;
    }
    OLAF_MUST(result);
    return Written(DoPeek(m_waiting.at(entry.id)), entry);
}

void
OlafQueue::HasLeft(Ptr<const Packet> packet)
{
    NS_LOG_FUNCTION(this << packet);
    if (!m_onWire)
    {
        return;
    }
    m_onWire = false;
    m_service = Simulator::Now() - m_begun;
    if (m_headKeepsSlot)
    {
        OLAF_MUST(olaf_queue_end(Engine()));
    }
}

olaf_fates
OlafQueue::GetFates() const
{
    olaf_fates fates{};
    OLAF_MUST(olaf_queue_get_fates(Engine(), &fates));
    return fates;
}

olaf_queue_status
OlafQueue::GetStatus() const
{
    olaf_queue_status status{};
    OLAF_MUST(olaf_queue_get_status(Engine(),
                                    Simulator::Now().GetNanoSeconds(),
                                    m_service.GetNanoSeconds(),
                                    &status));
    return status;
}

void
OlafQueue::DoDispose()
{
    m_waiting.clear();
    m_control.clear();
    m_engine.reset();
    Queue<Packet>::DoDispose();
}

void
OlafQueue::Free::operator()(olaf_queue* queue) const
{
    olaf_queue_free(queue);
}

olaf_queue*
OlafQueue::Engine() const
{
    if (!m_engine)
    {
        NS_ABORT_MSG_IF(olaf_abi_version() != OLAF_ABI_VERSION,
                        "libolaf is of version " << olaf_abi_version()
                                                 << ", this module was compiled for version "
                                                 << OLAF_ABI_VERSION);
        olaf_queue_options options{};
        OLAF_MUST(olaf_queue_options_default(&options));
        options.kind = m_kind.c_str();
        options.slots = m_slots;
        options.gate = m_gate < 0 ? std::nan("") : m_gate;
        options.active_ns = m_active.GetNanoSeconds();
        options.max_hops = m_maxHops;
        olaf_queue* engine = nullptr;
        const olaf_result result = olaf_queue_new(&options, &engine);
        NS_ABORT_MSG_IF(result != OLAF_RESULT_OK,
                        "OlafQueue of Kind \"" << m_kind << "\": " << olaf_result_text(result));
        m_engine.reset(engine);
        // The engine has the say; ns-3's own bound must only never be below it.
        const uint64_t room = uint64_t{m_slots} + m_controlLimit;
        const_cast<OlafQueue*>(this)->SetMaxSize(
            QueueSize(QueueSizeUnit::PACKETS, std::min<uint64_t>(room, UINT32_MAX)));
    }
    return m_engine.get();
}

bool
OlafQueue::EnqueueControl(Ptr<Packet> packet)
{
    if (m_control.size() >= m_controlLimit)
    {
        DropBeforeEnqueue(packet);
        return false;
    }
    Iterator place;
    const bool enqueued = DoEnqueue(GetContainer().end(), packet, place);
    NS_ASSERT_MSG(enqueued, "the limit leaves room");
    m_control.push_back(place);
    return true;
}

void
OlafQueue::Evict(const olaf_outcome& outcome)
{
    auto found = m_waiting.find(outcome.evicted);
    DoRemove(found->second);
    m_waiting.erase(found);
}

Ptr<Packet>
OlafQueue::Written(Ptr<const Packet> waiting, const olaf_entry& entry)
{
    OlafFrame frame;
    const bool opened = frame.Open(waiting);
    NS_ASSERT_MSG(opened, "it was opened when it came");
    std::vector<uint8_t> bytes(OLAF_UPDATE_HEADER_BYTES + 4 * entry.lane_count);
    size_t length = 0;
    OLAF_MUST(olaf_update_emit(&entry.update,
                               entry.lanes,
                               entry.lane_count,
                               bytes.data(),
                               bytes.size(),
                               &length));
    Ptr<Packet> datagram =
        Create<Packet>(bytes.data() + OLAF_UPDATE_HEADER_BYTES, length - OLAF_UPDATE_HEADER_BYTES);
    datagram->AddHeader(OlafHeader(entry.update, entry.lane_count));
    return frame.Close(datagram);
}

void
OlafQueue::Rewrite(Ptr<Packet> waiting, Ptr<const Packet> contents)
{
    m_nBytes -= waiting->GetSize();
    *waiting = *contents;
    m_nBytes += waiting->GetSize();
}

std::optional<OlafQueue::Iterator>
OlafQueue::Begin(bool& control)
{
    control = !m_control.empty();
    if (control)
    {
        Iterator place = m_control.front();
        m_control.pop_front();
        return place;
    }
    olaf_entry entry{};
    const olaf_result result =
        olaf_queue_begin(Engine(), Simulator::Now().GetNanoSeconds(), &entry);
    if (result == OLAF_RESULT_NOTHING)
    {
        return std::nullopt;
    }
    OLAF_MUST(result);
    auto found = m_waiting.find(entry.id);
    Iterator place = found->second;
    m_waiting.erase(found);
    Ptr<Packet> written = Written(*place, entry);
    std::vector<olaf_contributor> sharers(entry.contributors);
    size_t count = 0;
    OLAF_MUST(olaf_queue_contributors(Engine(), sharers.data(), sharers.size(), &count));
    OlafSharersTag tag;
    written->RemovePacketTag(tag);
    tag.SetSharers(std::move(sharers));
    written->AddPacketTag(tag);
    Rewrite(*place, written);
    return place;
}

} // namespace ns3
