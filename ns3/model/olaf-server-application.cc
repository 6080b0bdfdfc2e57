/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-server-application.h"

#include "olaf-error.h"

#include "ns3/boolean.h"
#include "ns3/inet-socket-address.h"
#include "ns3/log.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/udp-socket-factory.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("OlafServerApplication");

NS_OBJECT_ENSURE_REGISTERED(OlafServerApplication);

namespace
{

/** \return virtual time as libolaf counts it */
uint64_t
NowNs()
{
    return Simulator::Now().GetNanoSeconds();
}

/**
 * \param result what a call of libolaf returned
 * \param value what it wrote
 * \return the value, or nothing where there is none
 */
std::optional<double>
IfAny(olaf_result result, double value)
{
    if (result == OLAF_RESULT_NOTHING)
    {
        return std::nullopt;
    }
    OLAF_MUST(result);
    return value;
}

} // namespace

OlafAge::OlafAge()
{
    olaf_age* age = nullptr;
    OLAF_MUST(olaf_age_new(&age));
    m_age.reset(age);
}

void
OlafAge::Free::operator()(olaf_age* age) const
{
    olaf_age_free(age);
}

void
OlafAge::Deliver(uint64_t generatedNs)
{
    uint64_t before = 0;
    if (m_heard && generatedNs > m_newest)
    {
        OLAF_MUST(olaf_age_now(m_age.get(), NowNs(), &before));
        m_peakMax = std::max(m_peakMax, before);
    }
    OLAF_MUST(olaf_age_deliver(m_age.get(), NowNs(), generatedNs));
    m_newest = std::max(m_newest, generatedNs);
    m_heard = true;
}

void
OlafAge::ObserveFrom(uint64_t startNs)
{
    OLAF_MUST(olaf_age_observe_from(m_age.get(), startNs));
}

std::optional<double>
OlafAge::GetMean() const
{
    double mean = 0;
    const olaf_result result = olaf_age_mean(m_age.get(), NowNs(), &mean);
    return IfAny(result, mean);
}

std::optional<double>
OlafAge::GetPeakMean() const
{
    double mean = 0;
    const olaf_result result = olaf_age_peak_mean(m_age.get(), &mean);
    return IfAny(result, mean);
}

uint64_t
OlafAge::GetPeakMax() const
{
    return m_peakMax;
}

uint64_t
OlafAge::GetNewest() const
{
    return m_newest;
}

TypeId
OlafServerApplication::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::OlafServerApplication")
            .SetParent<Application>()
            .SetGroupName("Olaf")
            .AddConstructor<OlafServerApplication>()
            .AddAttribute("Port",
                          "UDP port it listens at.",
                          UintegerValue(5555),
                          MakeUintegerAccessor(&OlafServerApplication::m_port),
                          MakeUintegerChecker<uint16_t>())
            .AddAttribute("AnswerDelay",
                          "From a delivery to its answer.",
                          TimeValue(Seconds(0)),
                          MakeTimeAccessor(&OlafServerApplication::m_answerDelay),
                          MakeTimeChecker(Seconds(0)))
            .AddAttribute("Answers",
                          "Whether it answers.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&OlafServerApplication::m_answers),
                          MakeBooleanChecker())
            .AddAttribute("AnswerCluster",
                          "Whether the whole cluster hears an answer, or only those that had a "
                          "part in what was delivered.",
                          BooleanValue(false),
                          MakeBooleanAccessor(&OlafServerApplication::m_toCluster),
                          MakeBooleanChecker())
            .AddTraceSource("Rx",
                            "An update came.",
                            MakeTraceSourceAccessor(&OlafServerApplication::m_traceRx),
                            "ns3::Packet::TracedCallback");
    return tid;
}

OlafServerApplication::OlafServerApplication()
{
    NS_LOG_FUNCTION(this);
    olaf_recent_ages* ages = nullptr;
    OLAF_MUST(olaf_recent_ages_new(&ages));
    m_recent.reset(ages);
}

OlafServerApplication::~OlafServerApplication()
{
    NS_LOG_FUNCTION(this);
}

void
OlafServerApplication::Free::operator()(olaf_recent_ages* ages) const
{
    olaf_recent_ages_free(ages);
}

void
OlafServerApplication::AddWorker(uint32_t cluster, uint32_t worker, const Address& address)
{
    m_workers[worker] = {cluster, address};
}

const std::map<uint32_t, OlafServerApplication::Cluster>&
OlafServerApplication::GetClusters() const
{
    return m_clusters;
}

const OlafAge*
OlafServerApplication::GetWorkerAge(uint32_t worker) const
{
    auto found = m_workerAges.find(worker);
    return found == m_workerAges.end() ? nullptr : &found->second;
}

std::optional<uint64_t>
OlafServerApplication::GetFirstDeliveryNs() const
{
    return m_firstDeliveryNs;
}

const std::vector<uint64_t>&
OlafServerApplication::GetFanIn() const
{
    return m_fanIn;
}

void
OlafServerApplication::DoDispose()
{
    m_socket = nullptr;
    Application::DoDispose();
}

void
OlafServerApplication::StartApplication()
{
    NS_LOG_FUNCTION(this);
    m_socket = Socket::CreateSocket(GetNode(), UdpSocketFactory::GetTypeId());
    NS_ABORT_MSG_IF(m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), m_port)) != 0,
                    "port " << m_port << " is taken at the server's node: set Port");
    m_socket->SetRecvCallback(MakeCallback(&OlafServerApplication::Receive, this));
}

void
OlafServerApplication::StopApplication()
{
    NS_LOG_FUNCTION(this);
    if (m_socket)
    {
        m_socket->Close();
        m_socket->SetRecvCallback(MakeNullCallback<void, Ptr<Socket>>());
    }
}

void
OlafServerApplication::Receive(Ptr<Socket> socket)
{
    Address from;
    while (Ptr<Packet> packet = socket->RecvFrom(from))
    {
        OlafHeader header;
        packet->PeekHeader(header);
        if (header.GetResult() != OLAF_RESULT_OK)
        {
            NS_LOG_WARN("the server received what is no update: "
                        << olaf_result_text(header.GetResult()));
            continue;
        }
        m_traceRx(packet);
        const olaf_update& update = header.GetUpdate();
        OlafSharersTag tag;
        if (!packet->PeekPacketTag(tag))
        {
            tag.SetSharers({{update.worker, update.generated_newest_ns, OLAF_PART_SUMMED}});
        }
        const uint64_t begin = *(m_firstDeliveryNs = m_firstDeliveryNs.value_or(NowNs()));
        Cluster& cluster = m_clusters[update.cluster];
        cluster.age.ObserveFrom(begin);
        cluster.age.Deliver(update.generated_newest_ns);
        OLAF_MUST(olaf_recent_ages_deliver(m_recent.get(),
                                           update.cluster,
                                           NowNs(),
                                           update.generated_newest_ns));
        cluster.packets++;
        cluster.contributions += update.contributors;
        for (const OlafSharer& sharer : tag.GetSharers())
        {
            if (sharer.part == OLAF_PART_SUMMED)
            {
                OlafAge& age = m_workerAges[sharer.worker];
                age.ObserveFrom(begin);
                age.Deliver(sharer.generatedNs);
            }
        }
        m_fanIn.resize(std::max<size_t>(m_fanIn.size(), update.contributors + 1));
        m_fanIn[update.contributors]++;
        m_version++;
        if (m_answers)
        {
            Simulator::Schedule(m_answerDelay,
                                &OlafServerApplication::Answer,
                                this,
                                update,
                                tag.GetSharers());
        }
    }
}

void
OlafServerApplication::Answer(olaf_update update, std::vector<OlafSharer> sharers)
{
    std::set<uint32_t> receivers;
    if (m_toCluster)
    {
        for (const auto& [worker, place] : m_workers)
        {
            if (place.cluster == update.cluster)
            {
                receivers.insert(worker);
            }
        }
    }
    else
    {
        for (const OlafSharer& sharer : sharers)
        {
            receivers.insert(sharer.worker);
        }
    }
    olaf_answer answer{};
    answer.job = update.job;
    answer.cluster = update.cluster;
    answer.acknowledges = update.hop_sequence;
    answer.segment = update.segment;
    answer.segments = update.segments;
    answer.model_version = m_version;
    answer.delivered_version = update.version_newest;
    answer.delivered_newest_ns = m_clusters[update.cluster].age.GetNewest();
    answer.server_time_ns = NowNs();
    OLAF_MUST(olaf_recent_ages_get(m_recent.get(),
                                   update.cluster,
                                   NowNs(),
                                   &answer.own_age_us,
                                   &answer.mean_age_us));
    for (uint32_t worker : receivers)
    {
        auto found = m_workers.find(worker);
        if (found == m_workers.end())
        {
            continue;
        }
        answer.worker = worker;
        Ptr<Packet> packet = Create<Packet>();
        packet->AddHeader(OlafAnswerHeader(answer));
        m_socket->SendTo(packet, 0, found->second.address);
    }
}

} // namespace ns3
