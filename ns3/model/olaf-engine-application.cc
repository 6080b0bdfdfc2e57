/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-engine-application.h"

#include "olaf-error.h"
#include "olaf-sharers-tag.h"

#include "ns3/inet-socket-address.h"
#include "ns3/log.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/string.h"
#include "ns3/udp-socket-factory.h"
#include "ns3/uinteger.h"

#include <algorithm>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("OlafEngineApplication");

NS_OBJECT_ENSURE_REGISTERED(OlafEngineApplication);

namespace
{

/** \return virtual time as libolaf counts it */
uint64_t
NowNs()
{
    return Simulator::Now().GetNanoSeconds();
}

} // namespace

TypeId
OlafEngineApplication::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::OlafEngineApplication")
            .SetParent<Application>()
            .SetGroupName("Olaf")
            .AddConstructor<OlafEngineApplication>()
            .AddAttribute("Role",
                          "What the engine is: switch, sum_switch, iswitch, trio, atp, atp_server, "
                          "server or worker. Read with Config and Life when the engine is used first.",
                          StringValue("worker"),
                          MakeStringAccessor(&OlafEngineApplication::m_role),
                          MakeStringChecker())
            .AddAttribute("Config",
                          "The engine's configuration: JSON, as olaf_engine_new reads it.",
                          StringValue("{}"),
                          MakeStringAccessor(&OlafEngineApplication::m_config),
                          MakeStringChecker())
            .AddAttribute("Life",
                          "Names this life of the engine: another number when it is born again.",
                          UintegerValue(1),
                          MakeUintegerAccessor(&OlafEngineApplication::m_life),
                          MakeUintegerChecker<uint32_t>(1))
            .AddAttribute("Port",
                          "UDP port of the engine's port 0; each further port has the next one.",
                          UintegerValue(5555),
                          MakeUintegerAccessor(&OlafEngineApplication::m_port),
                          MakeUintegerChecker<uint16_t>(1))
            .AddAttribute("Remote",
                          "Peer 0, an InetSocketAddress: a worker's switch, a switch's server.",
                          AddressValue(),
                          MakeAddressAccessor(&OlafEngineApplication::m_remote),
                          MakeAddressChecker())
            .AddTraceSource("Tx",
                            "A datagram leaves, for one receiver or several.",
                            MakeTraceSourceAccessor(&OlafEngineApplication::m_traceTx),
                            "ns3::Packet::TracedCallback")
            .AddTraceSource("Rx",
                            "The engine took a datagram in.",
                            MakeTraceSourceAccessor(&OlafEngineApplication::m_traceRx),
                            "ns3::Packet::TracedCallback")
            .AddTraceSource("Drop",
                            "A datagram ends here: refused, or without a way to its receiver.",
                            MakeTraceSourceAccessor(&OlafEngineApplication::m_traceDrop),
                            "ns3::Packet::TracedCallback")
            .AddTraceSource("Event",
                            "Something happened: a JSON object with its name under \"event\".",
                            MakeTraceSourceAccessor(&OlafEngineApplication::m_traceEvent),
                            "ns3::OlafEngineApplication::EventTracedCallback");
    return tid;
}

OlafEngineApplication::OlafEngineApplication()
{
    NS_LOG_FUNCTION(this);
}

OlafEngineApplication::~OlafEngineApplication()
{
    NS_LOG_FUNCTION(this);
}

void
OlafEngineApplication::Free::operator()(olaf_engine* engine) const
{
    olaf_engine_free(engine);
}

void
OlafEngineApplication::SetEngine(olaf_engine* engine)
{
    m_engine.reset(engine);
}

olaf_engine*
OlafEngineApplication::GetEngine() const
{
    if (!m_engine)
    {
        olaf_engine* engine = nullptr;
        char why[256] = "";
        const olaf_result result =
            olaf_engine_new(m_role.c_str(), m_config.c_str(), m_life, why, sizeof why, &engine);
        NS_ABORT_MSG_IF(result != OLAF_RESULT_OK,
                        "Role or Config: " << (*why ? why : olaf_result_text(result)));
        m_engine.reset(engine);
    }
    return m_engine.get();
}

void
OlafEngineApplication::SetPeer(uint32_t number, const Address& address)
{
    m_peers[number] = address;
    m_numbers[address] = number;
}

void
OlafEngineApplication::Handle(Ptr<const Packet> datagram)
{
    Take(datagram, olaf_source{});
    Drain();
}

void
OlafEngineApplication::Join(const std::vector<float>& model)
{
    OLAF_MUST(olaf_engine_join(GetEngine(), NowNs(), model.data(), model.size()));
    Drain();
}

bool
OlafEngineApplication::Push(const std::vector<float>& update, double reward, double weight)
{
    uint32_t sequence = 0;
    const olaf_result result = olaf_engine_push(GetEngine(),
                                                NowNs(),
                                                update.data(),
                                                update.size(),
                                                reward,
                                                weight,
                                                &sequence);
    if (result == OLAF_RESULT_BAD_ARGUMENT)
    {
        return false;
    }
    OLAF_MUST(result);
    Drain();
    return true;
}

uint32_t
OlafEngineApplication::Pull(std::vector<float>& model, uint32_t newerThan)
{
    uint32_t version = 0;
    const olaf_result result =
        olaf_engine_pull(GetEngine(), newerThan, model.data(), model.size(), &version);
    if (result == OLAF_RESULT_NOTHING)
    {
        return 0;
    }
    OLAF_MUST(result);
    return version;
}

void
OlafEngineApplication::Leave()
{
    OLAF_MUST(olaf_engine_leave(GetEngine()));
    Drain();
}

uint64_t
OlafEngineApplication::GetDropped() const
{
    return m_dropped;
}

std::string
OlafEngineApplication::GetReport() const
{
    return OlafText([this](char* text, size_t capacity, size_t* length) {
        return olaf_engine_report(GetEngine(), NowNs(), text, capacity, length);
    });
}

void
OlafEngineApplication::DoDispose()
{
    m_timeout.Cancel();
    m_sockets.clear();
    m_engine.reset();
    Application::DoDispose();
}

void
OlafEngineApplication::StartApplication()
{
    NS_LOG_FUNCTION(this);
    if (InetSocketAddress::IsMatchingType(m_remote))
    {
        SetPeer(0, m_remote);
    }
    uint16_t ports = 0;
    OLAF_MUST(olaf_engine_ports(GetEngine(), &ports));
    for (uint16_t port = 0; port < ports; port++)
    {
        Ptr<Socket> socket = Socket::CreateSocket(GetNode(), UdpSocketFactory::GetTypeId());
        const uint16_t number = m_port + port;
        NS_ABORT_MSG_IF(socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), number)) != 0,
                        "UDP port " << number << " is taken at this node: set Port");
        socket->SetIpRecvTos(true);
        socket->SetRecvCallback(MakeCallback(&OlafEngineApplication::Receive, this));
        m_sockets.push_back(socket);
    }
    Drain();
}

void
OlafEngineApplication::StopApplication()
{
    NS_LOG_FUNCTION(this);
    m_timeout.Cancel();
    for (const Ptr<Socket>& socket : m_sockets)
    {
        socket->Close();
        socket->SetRecvCallback(MakeNullCallback<void, Ptr<Socket>>());
    }
    m_sockets.clear();
}

void
OlafEngineApplication::Receive(Ptr<Socket> socket)
{
    olaf_source from{};
    from.port = std::find(m_sockets.begin(), m_sockets.end(), socket) - m_sockets.begin();
    Address address;
    while (Ptr<Packet> packet = socket->RecvFrom(address))
    {
        auto found = m_numbers.find(address);
        if (found == m_numbers.end())
        {
            SetPeer(m_peers.empty() ? 0 : m_peers.rbegin()->first + 1, address);
            found = m_numbers.find(address);
        }
        from.peer = found->second;
        SocketIpTosTag tos;
        from.traffic_class = packet->PeekPacketTag(tos) ? tos.GetTos() : 0;
        Take(packet, from);
        Drain();
    }
}

void
OlafEngineApplication::Take(Ptr<const Packet> packet, const olaf_source& from)
{
    OlafSharersTag tag;
    if (packet->PeekPacketTag(tag))
    {
        const std::vector<olaf_contributor>& met = tag.GetSharers();
        OLAF_MUST(olaf_scenario_met(GetEngine(), met.data(), met.size()));
    }
    std::vector<uint8_t> bytes(packet->GetSize());
    packet->CopyData(bytes.data(), bytes.size());
    olaf_verdict verdict{};
    OLAF_MUST(olaf_engine_handle_packet(GetEngine(),
                                        NowNs(),
                                        &from,
                                        bytes.data(),
                                        bytes.size(),
                                        &verdict));
    if (verdict.kind == OLAF_VERDICT_ABSORBED)
    {
        m_traceRx(packet);
    }
    else
    {
        Drop(packet, verdict.reason);
    }
}

void
OlafEngineApplication::Drop(Ptr<const Packet> packet, const std::string& why)
{
    NS_LOG_WARN("a datagram of " << packet->GetSize() << " bytes ends here: " << why);
    m_dropped++;
    m_traceDrop(packet);
}

void
OlafEngineApplication::Timeout()
{
    OLAF_MUST(olaf_engine_handle_timeout(GetEngine(), NowNs()));
    Drain();
}

void
OlafEngineApplication::Drain()
{
    size_t length = 0;
    while (olaf_engine_poll_event(GetEngine(), nullptr, 0, &length) != OLAF_RESULT_NOTHING)
    {
        m_traceEvent(OlafText([this](char* text, size_t capacity, size_t* needed) {
            return olaf_engine_poll_event(GetEngine(), text, capacity, needed);
        }));
    }
    for (uint16_t port = 0; port < m_sockets.size(); port++)
    {
        Transmit(port);
    }
    Plan();
}

void
OlafEngineApplication::Transmit(uint16_t port)
{
    // One for all applications: a datagram is in a packet of its own before another is taken.
    static std::vector<uint8_t> bytes(OLAF_DATAGRAM_MAX);
    while (true)
    {
        olaf_transmit transmit{};
        const olaf_result result = olaf_engine_poll_transmit(GetEngine(),
                                                             NowNs(),
                                                             port,
                                                             bytes.data(),
                                                             bytes.size(),
                                                             &transmit);
        if (result == OLAF_RESULT_NOTHING)
        {
            return;
        }
        OLAF_MUST(result);
        std::vector<uint32_t> receivers(transmit.receivers);
        OLAF_MUST(olaf_engine_receivers(GetEngine(), receivers.data(), receivers.size()));
        Ptr<Packet> packet = Create<Packet>(bytes.data(), transmit.len);
        m_traceTx(packet);
        if (transmit.traffic_class != 0)
        {
            SocketIpTosTag tos;
            tos.SetTos(transmit.traffic_class);
            packet->AddPacketTag(tos);
        }
        for (const uint32_t receiver : receivers)
        {
            auto found = m_peers.find(receiver);
            if (found == m_peers.end())
            {
                Drop(packet, "its receiver has no address: set Remote, or call SetPeer()");
            }
            else if (m_sockets[port]->SendTo(packet->Copy(), 0, found->second) < 0)
            {
                Drop(packet, "no route to its receiver");
            }
        }
    }
}

void
OlafEngineApplication::Plan()
{
    uint64_t atNs = 0;
    const olaf_result result = olaf_engine_poll_timeout(GetEngine(), &atNs);
    if (m_sockets.empty() || result == OLAF_RESULT_NOTHING)
    {
        m_timeout.Cancel();
        return;
    }
    OLAF_MUST(result);
    if (m_timeout.IsRunning() && m_timeoutNs == atNs)
    {
        return;
    }
    m_timeout.Cancel();
    m_timeoutNs = atNs;
    m_timeout = Simulator::Schedule(std::max(NanoSeconds(atNs) - Simulator::Now(), Time(0)),
                                    &OlafEngineApplication::Timeout,
                                    this);
}

} // namespace ns3
