/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-scenario.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/inet-socket-address.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-address-helper.h"
#include "ns3/ipv4-interface-container.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/ipv4.h"
#include "ns3/olaf-error.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <cmath>
#include <iomanip>

namespace ns3
{

namespace
{

const uint16_t PORT = 5555;
/// PPP, IPv4 and UDP.
const uint32_t LOWER_HEADER_BYTES = 2 + 20 + 8;
const uint32_t HEADER_BYTES = LOWER_HEADER_BYTES + OLAF_UPDATE_HEADER_BYTES;

/**
 * \param node a node
 * \return its routes
 */
Ptr<Ipv4StaticRouting>
Routes(Ptr<Node> node)
{
    return Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<Ipv4>());
}

/**
 * \param os where to write
 * \param value a number, or null
 */
void
WriteNumber(std::ostream& os, std::optional<double> value)
{
    if (value && std::isfinite(*value))
    {
        os << *value;
    }
    else
    {
        os << "null";
    }
}

/**
 * \param os where to write
 * \param text a text, as JSON has it
 */
void
WriteText(std::ostream& os, const std::string& text)
{
    os << '"';
    for (const char c : text)
    {
        if (c == '"' || c == '\\')
        {
            os << '\\' << c;
        }
        else if (static_cast<unsigned char>(c) < 0x20)
        {
            os << "\\u" << std::hex << std::setw(4) << std::setfill('0') << int{c} << std::dec;
        }
        else
        {
            os << c;
        }
    }
    os << '"';
}

/**
 * \param part a part
 * \param whole of what
 * \return the share; of nothing none
 */
double
Share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

void
OlafScenario::Free::operator()(olaf_scenario* scenario) const
{
    olaf_scenario_free(scenario);
}

std::unique_ptr<OlafScenario>
OlafScenario::Create(const std::string& json, std::string& why)
{
    olaf_scenario* read = nullptr;
    std::vector<char> text(1024);
    const olaf_result result = olaf_scenario_new(json.c_str(), text.data(), text.size(), &read);
    if (result != OLAF_RESULT_OK)
    {
        why = result == OLAF_RESULT_BAD_ARGUMENT ? text.data() : olaf_result_text(result);
        return nullptr;
    }
    std::unique_ptr<OlafScenario> scenario(new OlafScenario(read));
    return scenario->Build(why) ? std::move(scenario) : nullptr;
}

OlafScenario::OlafScenario(olaf_scenario* scenario)
    : m_scenario(scenario)
{
    OLAF_MUST(olaf_scenario_get_shape(scenario, &m_shape));
}

OlafScenario::~OlafScenario()
{
    Simulator::Destroy();
}

bool
OlafScenario::Build(std::string& why)
{
    std::vector<olaf_group_spec> groups(m_shape.groups);
    for (uint32_t number = 0; number < m_shape.groups; number++)
    {
        olaf_group_spec& group = groups[number];
        OLAF_MUST(olaf_scenario_get_group(m_scenario.get(), number, &group));
        if (group.packet_bytes < HEADER_BYTES + 4 || (group.packet_bytes - HEADER_BYTES) % 4 != 0 ||
            group.packet_bytes > LOWER_HEADER_BYTES + 65507)
        {
            why = "group \"" + std::string(group.name) + "\": packet_bytes is " +
                  std::to_string(group.packet_bytes) + ", which ns-3 cannot send: " +
                  std::to_string(HEADER_BYTES) + " are headers (PPP, IPv4, UDP, Olaf), the rest " +
                  "must be lanes of 4 bytes, at least one";
            return false;
        }
    }

    m_serverNode = CreateObject<Node>();
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    stack.Install(m_serverNode);
    m_server = CreateObject<OlafServerApplication>();
    m_server->SetAttribute("Port", UintegerValue(PORT));
    m_server->SetAttribute("AnswerDelay", TimeValue(NanoSeconds(m_shape.answer_delay_ns)));
    m_server->SetAttribute("AnswerCluster", BooleanValue(m_shape.answers_to_cluster != 0));
    m_serverNode->AddApplication(m_server);

    m_switches.resize(m_shape.switches);
    for (uint32_t number = 0; number < m_shape.switches; number++)
    {
        m_switches[number].node = CreateObject<Node>();
        stack.Install(m_switches[number].node);
    }
    for (uint32_t number = 0; number < m_shape.switches; number++)
    {
        BuildSwitch(number);
    }
    for (Switch& built : m_switches)
    {
        m_queues.push_back(built.queue);
        if (m_shape.notices)
        {
            built.teller = CreateObject<OlafSwitchApplication>();
            built.teller->SetAttribute("Uplink", PointerValue(built.queue));
            built.teller->SetAttribute("NoticeDelay",
                                       TimeValue(NanoSeconds(m_shape.answer_delay_ns)));
            built.node->AddApplication(built.teller);
        }
    }
    uint32_t cluster = 0;
    uint32_t worker = 0;
    for (const olaf_group_spec& group : groups)
    {
        BuildGroup(group, cluster, worker);
    }
    return true;
}

void
OlafScenario::BuildSwitch(uint32_t number)
{
    Switch& self = m_switches[number];
    if (self.queue)
    {
        return;
    }
    OLAF_MUST(olaf_scenario_get_switch(m_scenario.get(), number, &self.spec));
    Ptr<Node> above = m_serverNode;
    Ptr<OlafQueue> aboveUplink;
    if (self.spec.upstream != OLAF_SERVER)
    {
        // The one above comes first: its state is told by the link between the two.
        BuildSwitch(self.spec.upstream);
        above = m_switches[self.spec.upstream].node;
        aboveUplink = m_switches[self.spec.upstream].queue;
    }
    m_links.SetQueueAttribute("Kind", StringValue(self.spec.queue));
    m_links.SetQueueAttribute("Slots", UintegerValue(self.spec.slots));
    m_links.SetQueueAttribute("Gate",
                              DoubleValue(std::isnan(self.spec.gate) ? -1.0 : self.spec.gate));
    m_links.SetQueueAttribute("ActiveWindow", TimeValue(NanoSeconds(m_shape.active_ns)));
    m_links.SetQueueAttribute("HeadKeepsSlot", BooleanValue(m_shape.head_keeps_slot != 0));
    NetDeviceContainer devices = m_links.InstallUplink(self.node,
                                                       above,
                                                       self.spec.rate_bps,
                                                       NanoSeconds(self.spec.delay_ns),
                                                       aboveUplink,
                                                       self.queue);
    static Ipv4AddressHelper addresses("172.16.0.0", "255.255.255.252");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    Routes(self.node)->SetDefaultRoute(interfaces.GetAddress(1), interfaces.Get(0).second);
    self.aboveInterface = interfaces.Get(1).second;
    if (self.spec.upstream == OLAF_SERVER)
    {
        // Several switches may lead to the server: each of its addresses is it.
        m_serverAddress = interfaces.GetAddress(1);
    }
}

void
OlafScenario::BuildGroup(const olaf_group_spec& group, uint32_t& cluster, uint32_t& worker)
{
    for (uint32_t i = 0; i < group.clusters; i++, cluster++)
    {
        m_clusterGroups.emplace_back(group.name);
        m_members.emplace_back();
        for (uint32_t j = 0; j < group.workers; j++, worker++)
        {
            m_members.back().push_back(worker);
            BuildWorker(cluster, worker, group.switch_index, group.packet_bytes);
        }
    }
}

void
OlafScenario::BuildWorker(uint32_t cluster, uint32_t worker, uint32_t at, uint32_t packetBytes)
{
    Ptr<Node> node = CreateObject<Node>();
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    stack.Install(node);
    NetDeviceContainer devices =
        m_links.InstallAccess(node, m_switches[at].node, m_switches[at].queue);
    static Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    Routes(node)->SetDefaultRoute(interfaces.GetAddress(1), interfaces.Get(0).second);

    // The way down: each node above the worker's switch learns where the worker is.
    const Ipv4Address own = interfaces.GetAddress(0);
    for (uint32_t number = at; number != OLAF_SERVER; number = m_switches[number].spec.upstream)
    {
        const Switch& below = m_switches[number];
        Ptr<Node> above = below.spec.upstream == OLAF_SERVER
                              ? m_serverNode
                              : m_switches[below.spec.upstream].node;
        Routes(above)->AddHostRouteTo(own, below.aboveInterface);
    }

    Ptr<OlafWorkerApplication> application = CreateObject<OlafWorkerApplication>();
    application->SetAttribute("Remote", AddressValue(InetSocketAddress(m_serverAddress, PORT)));
    application->SetAttribute("Cluster", UintegerValue(cluster));
    application->SetAttribute("Worker", UintegerValue(worker));
    application->SetAttribute("Lanes", UintegerValue((packetBytes - HEADER_BYTES) / 4));
    application->SetAttribute("LocalPort", UintegerValue(PORT));
    size_t count = 0;
    olaf_scenario_get_ready(m_scenario.get(), worker, nullptr, 0, &count);
    std::vector<uint64_t> ready(count);
    OLAF_MUST(
        olaf_scenario_get_ready(m_scenario.get(), worker, ready.data(), ready.size(), &count));
    std::vector<Time> schedule;
    schedule.reserve(count);
    for (const uint64_t at : ready)
    {
        schedule.push_back(NanoSeconds(at));
    }
    application->SetSchedule(std::move(schedule));
    olaf_sender* sender = nullptr;
    OLAF_MUST(olaf_sender_new(m_scenario.get(), worker, &sender));
    application->SetSender(sender);
    node->AddApplication(application);
    m_server->AddWorker(cluster, worker, InetSocketAddress(own, PORT));
    if (m_switches[at].teller)
    {
        m_switches[at].teller->AddWorker(cluster, worker, InetSocketAddress(own, PORT));
    }
    m_workers.push_back(application);
}

void
OlafScenario::Run(std::ostream* progress)
{
    if (progress)
    {
        for (int percent = 10; percent <= 100; percent += 10)
        {
            Simulator::Schedule(NanoSeconds(m_shape.duration_ns / 100 * percent - 1),
                                &OlafScenario::Tell,
                                progress,
                                percent);
        }
    }
    Simulator::Stop(NanoSeconds(m_shape.duration_ns));
    Simulator::Run();
}

void
OlafScenario::Tell(std::ostream* progress, int percent)
{
    *progress << "\r" << percent << " % of the simulated time" << (percent == 100 ? "\n" : "")
              << std::flush;
}

const std::vector<Ptr<OlafQueue>>&
OlafScenario::GetQueues() const
{
    return m_queues;
}

Ptr<OlafServerApplication>
OlafScenario::GetServer() const
{
    return m_server;
}

const std::vector<Ptr<OlafWorkerApplication>>&
OlafScenario::GetWorkers() const
{
    return m_workers;
}

std::string
OlafScenario::RunInOlafSim() const
{
    // Twice, since only a run tells how long its outcome is.
    size_t length = 0;
    const olaf_result result = olaf_scenario_run(m_scenario.get(), nullptr, 0, &length);
    NS_ASSERT(result == OLAF_RESULT_TOO_SHORT);
    std::vector<char> json(length);
    OLAF_MUST(olaf_scenario_run(m_scenario.get(), json.data(), json.size(), &length));
    return json.data();
}

void
OlafScenario::WriteOutcome(std::ostream& os) const
{
    uint64_t generated = 0;
    uint64_t sent = 0;
    uint64_t contributions = 0;
    olaf_sender_counts senders{};
    for (const Ptr<OlafWorkerApplication>& worker : m_workers)
    {
        generated += worker->GetReady();
        sent += worker->GetSent();
        contributions += worker->GetContributions();
        const olaf_sender_counts counts = worker->GetSenderCounts();
        senders.discarded += counts.discarded;
        senders.held += counts.held;
        senders.decisions += counts.decisions;
        senders.probability_sum += counts.probability_sum;
    }
    olaf_fates fates{};
    OlafQueue::Packets packets;
    for (const Ptr<OlafQueue>& queue : m_queues)
    {
        const olaf_fates own = queue->GetFates();
        fates.replaced += own.replaced;
        fates.filtered += own.filtered;
        fates.dropped += own.dropped;
        fates.rejected += own.rejected;
        packets.merged += queue->GetPackets().merged;
        packets.dropped += queue->GetPackets().dropped;
    }
    uint64_t delivered = 0;
    uint64_t packetsDelivered = 0;
    std::vector<double> ages;
    for (const auto& [number, cluster] : m_server->GetClusters())
    {
        delivered += cluster.contributions;
        packetsDelivered += cluster.packets;
    }
    for (uint32_t number = 0; number < m_members.size(); number++)
    {
        const auto found = m_server->GetClusters().find(number);
        const bool heard = found != m_server->GetClusters().end();
        if (const auto mean = MeanAge(heard ? &found->second.age : nullptr))
        {
            ages.push_back(*mean);
        }
    }
    std::optional<double> fairness;
    double jain = 0;
    if (olaf_jain(ages.data(), ages.size(), &jain) == OLAF_RESULT_OK)
    {
        fairness = jain;
    }
    const uint64_t settled = delivered + fates.replaced + fates.filtered + fates.dropped +
                             fates.rejected + senders.discarded + senders.held;

    os << std::setprecision(17) << "{\"simulator\":\"ns-3\",\"fates\":{\"generated\":" << generated
       << ",\"delivered\":" << delivered << ",\"replaced\":" << fates.replaced
       << ",\"filtered\":" << fates.filtered << ",\"dropped\":" << fates.dropped
       << ",\"rejected\":" << fates.rejected << ",\"discarded\":" << senders.discarded
       << ",\"held\":" << senders.held << ",\"on_the_way\":" << generated - settled
       << "},\"packets_sent\":" << sent << ",\"packets_dropped\":" << packets.dropped
       << ",\"packets_delivered\":" << packetsDelivered
       << ",\"packets_merged\":" << packets.merged
       << ",\"loss_packets\":" << Share(packets.dropped, sent)
       << ",\"loss_contributions\":" << Share(fates.dropped, contributions) << ",\"fairness\":";
    WriteNumber(os, fairness);
    os << ",\"clusters\":";
    WriteClusters(os);
    os << ",\"switches\":";
    WriteSwitches(os);
    os << ",\"probability_mean\":"
       << (senders.decisions == 0 ? 1.0 : senders.probability_sum / senders.decisions)
       << ",\"fan_in\":[";
    const char* comma = "";
    for (const uint64_t count : m_server->GetFanIn())
    {
        os << comma << count;
        comma = ",";
    }
    os << "]}\n";
}

std::optional<double>
OlafScenario::MeanAge(const OlafAge* age) const
{
    const std::optional<uint64_t> begin = m_server->GetFirstDeliveryNs();
    if (age || !begin)
    {
        return age ? age->GetMean() : std::nullopt;
    }
    OlafAge starved;
    starved.ObserveFrom(*begin);
    return starved.GetMean();
}

void
OlafScenario::WriteClusters(std::ostream& os) const
{
    const char* comma = "[";
    for (uint32_t number = 0; number < m_members.size(); number++)
    {
        const auto found = m_server->GetClusters().find(number);
        const bool heard = found != m_server->GetClusters().end();
        double sum = 0;
        uint32_t workers = 0;
        uint32_t unheard = 0;
        for (const uint32_t worker : m_members[number])
        {
            const OlafAge* age = m_server->GetWorkerAge(worker);
            unheard += age ? 0 : 1;
            if (const std::optional<double> mean = MeanAge(age))
            {
                sum += *mean;
                workers++;
            }
        }
        os << comma << "{\"group\":";
        WriteText(os, m_clusterGroups[number]);
        os << ",\"cluster\":" << number << ",\"age_mean_ns\":";
        WriteNumber(os, MeanAge(heard ? &found->second.age : nullptr));
        os << ",\"age_peak_mean_ns\":";
        WriteNumber(os, heard ? found->second.age.GetPeakMean() : std::nullopt);
        os << ",\"age_peak_max_ns\":";
        const uint64_t peak = heard ? found->second.age.GetPeakMax() : 0;
        peak > 0 ? os << peak : os << "null";
        os << ",\"worker_age_mean_ns\":";
        WriteNumber(os, workers > 0 ? std::optional(sum / workers) : std::nullopt);
        os << ",\"workers_unheard\":" << unheard
           << ",\"packets\":" << (heard ? found->second.packets : 0)
           << ",\"contributions\":" << (heard ? found->second.contributions : 0) << "}";
        comma = ",";
    }
    os << "]";
}

void
OlafScenario::WriteSwitches(std::ostream& os) const
{
    const char* comma = "[";
    for (const Switch& self : m_switches)
    {
        const olaf_fates fates = self.queue->GetFates();
        const OlafQueue::Packets& packets = self.queue->GetPackets();
        os << comma << "{\"name\":";
        WriteText(os, self.spec.name);
        os << ",\"received\":" << fates.received << ",\"sent_alone\":" << fates.sent_alone
           << ",\"merged\":" << fates.merged << ",\"replaced\":" << fates.replaced
           << ",\"filtered\":" << fates.filtered << ",\"dropped\":" << fates.dropped
           << ",\"rejected\":" << fates.rejected << ",\"waiting\":" << fates.waiting
           << ",\"packets_received\":" << packets.received
           << ",\"packets_merged\":" << packets.merged
           << ",\"packets_dropped\":" << packets.dropped
           << ",\"packets_sent\":" << fates.departures << "}";
        comma = ",";
    }
    os << "]";
}

} // namespace ns3
