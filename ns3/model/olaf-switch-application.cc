/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-switch-application.h"

#include "olaf-header.h"

#include "ns3/log.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/udp-socket-factory.h"

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("OlafSwitchApplication");

NS_OBJECT_ENSURE_REGISTERED(OlafSwitchApplication);

TypeId
OlafSwitchApplication::GetTypeId()
{
    static TypeId tid = TypeId("ns3::OlafSwitchApplication")
                            .SetParent<Application>()
                            .SetGroupName("Olaf")
                            .AddConstructor<OlafSwitchApplication>()
                            .AddAttribute("Uplink",
                                          "The switch's uplink queue.",
                                          PointerValue(),
                                          MakePointerAccessor(&OlafSwitchApplication::m_uplink),
                                          MakePointerChecker<OlafQueue>())
                            .AddAttribute("NoticeDelay",
                                          "From an update that is taken in to the word of it.",
                                          TimeValue(Seconds(0)),
                                          MakeTimeAccessor(&OlafSwitchApplication::m_delay),
                                          MakeTimeChecker(Seconds(0)));
    return tid;
}

OlafSwitchApplication::OlafSwitchApplication()
{
    NS_LOG_FUNCTION(this);
}

OlafSwitchApplication::~OlafSwitchApplication()
{
    NS_LOG_FUNCTION(this);
}

void
OlafSwitchApplication::AddWorker(uint32_t cluster, uint32_t worker, const Address& address)
{
    m_workers[cluster][worker] = address;
}

void
OlafSwitchApplication::DoDispose()
{
    m_socket = nullptr;
    m_uplink = nullptr;
    Application::DoDispose();
}

void
OlafSwitchApplication::StartApplication()
{
    NS_LOG_FUNCTION(this);
    NS_ABORT_MSG_IF(!m_uplink, "an OlafSwitchApplication without an Uplink: set it to an OlafQueue");
    m_socket = Socket::CreateSocket(GetNode(), UdpSocketFactory::GetTypeId());
    m_socket->Bind();
    m_uplink->TraceConnectWithoutContext("Taken", MakeCallback(&OlafSwitchApplication::Taken, this));
}

void
OlafSwitchApplication::StopApplication()
{
    NS_LOG_FUNCTION(this);
    if (m_socket)
    {
        m_uplink->TraceDisconnectWithoutContext("Taken",
                                                MakeCallback(&OlafSwitchApplication::Taken, this));
        m_socket->Close();
    }
}

void
OlafSwitchApplication::Taken(uint32_t job, uint32_t cluster, uint64_t newestNs)
{
    Simulator::Schedule(m_delay, &OlafSwitchApplication::Tell, this, job, cluster, newestNs);
}

void
OlafSwitchApplication::Tell(uint32_t job, uint32_t cluster, uint64_t newestNs)
{
    for (const auto& [worker, address] : m_workers[cluster])
    {
        Ptr<Packet> packet = Create<Packet>();
        packet->AddHeader(OlafNoticeHeader({job, cluster, worker, 0, newestNs}));
        m_socket->SendTo(packet, 0, address);
    }
}

} // namespace ns3
