/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-downlink-queue.h"

#include "olaf-frame.h"

#include "ns3/log.h"
#include "ns3/pointer.h"

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("OlafDownlinkQueue");

NS_OBJECT_ENSURE_REGISTERED(OlafDownlinkQueue);

TypeId
OlafDownlinkQueue::GetTypeId()
{
    static TypeId tid = TypeId("ns3::OlafDownlinkQueue<Packet>")
                            .SetParent<DropTailQueue<Packet>>()
                            .SetGroupName("Olaf")
                            .AddConstructor<OlafDownlinkQueue>()
                            .AddAttribute("Uplink",
                                          "The switch's uplink queue, whose state is told.",
                                          PointerValue(),
                                          MakePointerAccessor(&OlafDownlinkQueue::m_uplink),
                                          MakePointerChecker<OlafQueue>());
    return tid;
}

OlafDownlinkQueue::OlafDownlinkQueue()
{
    NS_LOG_FUNCTION(this);
}

OlafDownlinkQueue::~OlafDownlinkQueue()
{
    NS_LOG_FUNCTION(this);
}

bool
OlafDownlinkQueue::Enqueue(Ptr<Packet> packet)
{
    NS_LOG_FUNCTION(this << packet);
    OlafFrame frame;
    if (m_uplink && frame.Open(packet))
    {
        std::vector<uint8_t> bytes(frame.GetDatagram()->GetSize());
        frame.GetDatagram()->CopyData(bytes.data(), bytes.size());
        const olaf_queue_status own = m_uplink->GetStatus();
        if (olaf_answer_stamp(bytes.data(), bytes.size(), &own) == OLAF_RESULT_OK)
        {
            return DropTailQueue<Packet>::Enqueue(
                frame.Close(Create<Packet>(bytes.data(), bytes.size())));
        }
    }
    return DropTailQueue<Packet>::Enqueue(packet);
}

void
OlafDownlinkQueue::DoDispose()
{
    m_uplink = nullptr;
    DropTailQueue<Packet>::DoDispose();
}

} // namespace ns3
