/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-worker-application.h"

#include "olaf-error.h"

#include "ns3/double.h"
#include "ns3/inet-socket-address.h"
#include "ns3/log.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/udp-socket-factory.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <utility>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("OlafWorkerApplication");

NS_OBJECT_ENSURE_REGISTERED(OlafWorkerApplication);

TypeId
OlafWorkerApplication::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::OlafWorkerApplication")
            .SetParent<Application>()
            .SetGroupName("Olaf")
            .AddConstructor<OlafWorkerApplication>()
            .AddAttribute("Remote",
                          "The server: an InetSocketAddress.",
                          AddressValue(),
                          MakeAddressAccessor(&OlafWorkerApplication::m_remote),
                          MakeAddressChecker())
            .AddAttribute("LocalPort",
                          "UDP port it hears answers at; 0: any.",
                          UintegerValue(0),
                          MakeUintegerAccessor(&OlafWorkerApplication::m_localPort),
                          MakeUintegerChecker<uint16_t>())
            .AddAttribute("Job",
                          "The job.",
                          UintegerValue(1),
                          MakeUintegerAccessor(&OlafWorkerApplication::m_job),
                          MakeUintegerChecker<uint32_t>())
            .AddAttribute("Cluster",
                          "The cluster in the job: updates of one cluster may merge.",
                          UintegerValue(0),
                          MakeUintegerAccessor(&OlafWorkerApplication::m_cluster),
                          MakeUintegerChecker<uint32_t>())
            .AddAttribute("Worker",
                          "The worker, unique in the job.",
                          UintegerValue(0),
                          MakeUintegerAccessor(&OlafWorkerApplication::m_worker),
                          MakeUintegerChecker<uint32_t>())
            .AddAttribute("Lanes",
                          "32-bit numbers of an update: 226 make a packet of 1030 bytes.",
                          UintegerValue(226),
                          MakeUintegerAccessor(&OlafWorkerApplication::m_lanes),
                          MakeUintegerChecker<uint32_t>(1, OLAF_LANES_MAX))
            .AddAttribute("Reward",
                          "The reward every update comes with.",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&OlafWorkerApplication::m_reward),
                          MakeDoubleChecker<double>())
            .AddAttribute("Interval",
                          "From one update to the next.",
                          TimeValue(MilliSeconds(100)),
                          MakeTimeAccessor(&OlafWorkerApplication::m_interval),
                          MakeTimeChecker(NanoSeconds(1)))
            .AddAttribute("Phase",
                          "From the start to the first update.",
                          TimeValue(Seconds(0)),
                          MakeTimeAccessor(&OlafWorkerApplication::m_phase),
                          MakeTimeChecker(Seconds(0)))
            .AddAttribute("Lateness",
                          "Each update is ready up to so much later, drawn evenly.",
                          TimeValue(Seconds(0)),
                          MakeTimeAccessor(&OlafWorkerApplication::m_lateness),
                          MakeTimeChecker(Seconds(0)))
            .AddTraceSource("Tx",
                            "A packet is sent.",
                            MakeTraceSourceAccessor(&OlafWorkerApplication::m_traceTx),
                            "ns3::Packet::TracedCallback")
            .AddTraceSource("Rx",
                            "An answer or a notice came.",
                            MakeTraceSourceAccessor(&OlafWorkerApplication::m_traceRx),
                            "ns3::Packet::TracedCallback");
    return tid;
}

OlafWorkerApplication::OlafWorkerApplication()
    : m_late(CreateObject<UniformRandomVariable>())
{
    NS_LOG_FUNCTION(this);
}

OlafWorkerApplication::~OlafWorkerApplication()
{
    NS_LOG_FUNCTION(this);
}

void
OlafWorkerApplication::SetSchedule(std::vector<Time> ready)
{
    m_schedule = std::move(ready);
    m_scheduled = true;
}

void
OlafWorkerApplication::SetSender(olaf_sender* sender)
{
    m_sender.reset(sender);
}

void
OlafWorkerApplication::Free::operator()(olaf_sender* sender) const
{
    olaf_sender_free(sender);
}

olaf_sender_counts
OlafWorkerApplication::GetSenderCounts() const
{
    olaf_sender_counts counts{};
    if (m_sender)
    {
        OLAF_MUST(olaf_sender_get_counts(m_sender.get(), &counts));
    }
    return counts;
}

int64_t
OlafWorkerApplication::AssignStreams(int64_t stream)
{
    m_late->SetStream(stream);
    return 1;
}

uint64_t
OlafWorkerApplication::GetReady() const
{
    return m_ready;
}

uint64_t
OlafWorkerApplication::GetSent() const
{
    return m_sent;
}

uint64_t
OlafWorkerApplication::GetContributions() const
{
    return m_contributions;
}

uint64_t
OlafWorkerApplication::GetAnswers() const
{
    return m_answers;
}

uint64_t
OlafWorkerApplication::GetNotices() const
{
    return m_notices;
}

void
OlafWorkerApplication::DoDispose()
{
    m_socket = nullptr;
    m_late = nullptr;
    Application::DoDispose();
}

void
OlafWorkerApplication::StartApplication()
{
    NS_LOG_FUNCTION(this);
    m_socket = Socket::CreateSocket(GetNode(), UdpSocketFactory::GetTypeId());
    NS_ABORT_MSG_IF(m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), m_localPort)) != 0 ||
                         m_socket->Connect(m_remote) != 0,
                    "worker " << m_worker << " cannot reach Remote: set it to an "
                              << "InetSocketAddress that is routed to");
    m_socket->SetRecvCallback(MakeCallback(&OlafWorkerApplication::Receive, this));
    m_tick = Simulator::Now() + m_phase;
    Plan();
}

void
OlafWorkerApplication::StopApplication()
{
    NS_LOG_FUNCTION(this);
    m_event.Cancel();
    m_retry.Cancel();
    if (m_socket)
    {
        m_socket->Close();
        m_socket->SetRecvCallback(MakeNullCallback<void, Ptr<Socket>>());
    }
}

void
OlafWorkerApplication::Plan()
{
    Time at;
    if (m_scheduled)
    {
        if (m_next == m_schedule.size())
        {
            return;
        }
        at = m_schedule[m_next++];
    }
    else
    {
        const double late = m_late->GetValue(0, static_cast<double>(m_lateness.GetNanoSeconds()));
        at = m_tick + NanoSeconds(static_cast<int64_t>(late));
        m_tick += m_interval;
    }
    // One that is very late is not overtaken by those behind it.
    m_event = Simulator::Schedule(std::max(at - Simulator::Now(), Time(0)),
                                  &OlafWorkerApplication::Ready,
                                  this);
}

void
OlafWorkerApplication::Ready()
{
    NS_LOG_FUNCTION(this);
    m_ready++;
    if (m_sender)
    {
        olaf_decision decision{};
        OLAF_MUST(
            olaf_sender_ready(m_sender.get(), Simulator::Now().GetNanoSeconds(), &decision));
        Act(decision);
    }
    else
    {
        Send(1, Simulator::Now(), Simulator::Now());
    }
    Plan();
}

void
OlafWorkerApplication::Retry()
{
    olaf_decision decision{};
    OLAF_MUST(olaf_sender_retry(m_sender.get(), Simulator::Now().GetNanoSeconds(), &decision));
    Act(decision);
}

void
OlafWorkerApplication::Act(const olaf_decision& decision)
{
    switch (decision.action)
    {
    case OLAF_ACTION_SEND:
        Send(decision.contributors,
             NanoSeconds(decision.generated_oldest_ns),
             NanoSeconds(decision.generated_newest_ns));
        break;
    case OLAF_ACTION_RETRY:
        m_retry = Simulator::Schedule(NanoSeconds(decision.retry_after_ns),
                                      &OlafWorkerApplication::Retry,
                                      this);
        break;
    case OLAF_ACTION_HOLD:
        break;
    }
}

void
OlafWorkerApplication::Send(uint32_t contributions, Time oldest, Time newest)
{
    olaf_update update{};
    update.job = m_job;
    update.cluster = m_cluster;
    update.worker = m_worker;
    update.sequence = m_sequence++;
    update.hop_sequence = update.sequence + 1;
    update.segments = 1;
    update.generated_oldest_ns = oldest.GetNanoSeconds();
    update.generated_newest_ns = newest.GetNanoSeconds();
    update.contributors = contributions;
    update.weight = contributions;
    update.reward = m_reward;

    // Each contribution's lanes are 1 and so is its weight.
    const std::vector<float> lanes(m_lanes, static_cast<float>(contributions));
    std::vector<uint8_t> bytes(OLAF_UPDATE_HEADER_BYTES + 4 * lanes.size());
    size_t length = 0;
    OLAF_MUST(olaf_update_emit(&update,
                               lanes.data(),
                               lanes.size(),
                               bytes.data(),
                               bytes.size(),
                               &length));
    Ptr<Packet> packet =
        Create<Packet>(bytes.data() + OLAF_UPDATE_HEADER_BYTES, length - OLAF_UPDATE_HEADER_BYTES);
    packet->AddHeader(OlafHeader(update, m_lanes));
    m_sent++;
    m_contributions += contributions;
    m_traceTx(packet);
    m_socket->Send(packet);
}

void
OlafWorkerApplication::Receive(Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        if (Hear(packet))
        {
            m_traceRx(packet);
        }
        else
        {
            NS_LOG_WARN("worker " << m_worker << " received what is neither answer nor notice");
        }
    }
}

bool
OlafWorkerApplication::Hear(Ptr<const Packet> packet)
{
    const uint64_t nowNs = Simulator::Now().GetNanoSeconds();
    OlafAnswerHeader header;
    packet->PeekHeader(header);
    if (header.GetResult() == OLAF_RESULT_OK)
    {
        m_answers++;
        if (m_sender)
        {
            const olaf_answer& answer = header.GetAnswer();
            const olaf_feedback feedback{answer.queue, answer.own_age_us, answer.mean_age_us};
            OLAF_MUST(olaf_sender_hear(m_sender.get(), nowNs, &feedback));
        }
        return true;
    }
    OlafNoticeHeader notice;
    packet->PeekHeader(notice);
    if (notice.GetResult() != OLAF_RESULT_OK)
    {
        return false;
    }
    m_notices++;
    if (m_sender)
    {
        OLAF_MUST(olaf_sender_taken(m_sender.get(), nowNs, notice.GetNotice().taken_newest_ns));
    }
    return true;
}

} // namespace ns3
