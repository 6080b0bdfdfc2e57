/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-helper.h"

#include "ns3/data-rate.h"
#include "ns3/node.h"
#include "ns3/olaf-downlink-queue.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/pointer.h"
#include "ns3/uinteger.h"

namespace ns3
{

namespace
{
// So fast that a packet takes no nanosecond: what is studied is the uplinks.
const uint64_t ACCESS_BITS_PER_SECOND = 10000000000000000;

/**
 * \param delay of the link
 * \return what makes links without flow control
 */
PointToPointHelper
Links(Time delay)
{
    PointToPointHelper links;
    links.DisableFlowControl();
    links.SetDeviceAttribute("DataRate", DataRateValue(DataRate(ACCESS_BITS_PER_SECOND)));
    links.SetDeviceAttribute("Mtu", UintegerValue(65535));
    links.SetChannelAttribute("Delay", TimeValue(delay));
    return links;
}
} // namespace

OlafHelper::OlafHelper()
{
    m_queue.SetTypeId(OlafQueue::GetTypeId());
}

void
OlafHelper::SetQueueAttribute(const std::string& name, const AttributeValue& value)
{
    m_queue.Set(name, value);
}

NetDeviceContainer
OlafHelper::InstallAccess(Ptr<Node> below, Ptr<Node> above, Ptr<OlafQueue> uplink) const
{
    NetDeviceContainer devices = Links(Seconds(0)).Install(below, above);
    DynamicCast<PointToPointNetDevice>(devices.Get(1))->SetQueue(Downlink(uplink));
    return devices;
}

NetDeviceContainer
OlafHelper::InstallUplink(Ptr<Node> below,
                          Ptr<Node> above,
                          uint64_t bitsPerSecond,
                          Time delay,
                          Ptr<OlafQueue> aboveUplink,
                          Ptr<OlafQueue>& queue) const
{
    NetDeviceContainer devices = Links(delay).Install(below, above);
    queue = m_queue.Create<OlafQueue>();
    Ptr<PointToPointNetDevice> up = DynamicCast<PointToPointNetDevice>(devices.Get(0));
    up->SetDataRate(DataRate(bitsPerSecond));
    up->SetQueue(queue);
    up->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&OlafQueue::HasLeft, queue));
    DynamicCast<PointToPointNetDevice>(devices.Get(1))->SetQueue(Downlink(aboveUplink));
    return devices;
}

Ptr<Queue<Packet>>
OlafHelper::Downlink(Ptr<OlafQueue> uplink)
{
    Ptr<OlafDownlinkQueue> queue = CreateObject<OlafDownlinkQueue>();
    queue->SetAttribute("MaxSize", QueueSizeValue(QueueSize("65536p")));
    if (uplink)
    {
        queue->SetAttribute("Uplink", PointerValue(uplink));
    }
    return queue;
}

} // namespace ns3
