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
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <cmath>

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
 * \param node where it runs
 * \param engine an engine
 * \return the engine's application
 */
Ptr<OlafEngineApplication>
Install(Ptr<Node> node, olaf_engine* engine)
{
    Ptr<OlafEngineApplication> application = CreateObject<OlafEngineApplication>();
    application->SetAttribute("Port", UintegerValue(PORT));
    application->SetEngine(engine);
    node->AddApplication(application);
    return application;
}

/** \return what gives a node IPv4 and static routes */
InternetStackHelper
Stack()
{
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    return stack;
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
    Stack().Install(m_serverNode);
    olaf_engine* server = nullptr;
    OLAF_MUST(olaf_scenario_server(m_scenario.get(), &server));
    m_server = Install(m_serverNode, server);

    m_switches.resize(m_shape.switches);
    for (Switch& built : m_switches)
    {
        built.node = CreateObject<Node>();
        Stack().Install(built.node);
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
            olaf_engine* notices = nullptr;
            OLAF_MUST(olaf_scenario_notices(m_scenario.get(), &notices));
            built.notices = Install(built.node, notices);
            built.queue->TraceConnectWithoutContext(
                "Taken",
                MakeCallback(&OlafEngineApplication::Handle, built.notices));
        }
    }
    for (const olaf_group_spec& group : groups)
    {
        for (uint32_t i = 0; i < group.clusters * group.workers; i++)
        {
            BuildWorker(group);
        }
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
    self.uplink = devices.Get(0);
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
OlafScenario::BuildWorker(const olaf_group_spec& group)
{
    const uint32_t worker = m_workers.size();
    const Switch& first = m_switches[group.switch_index];
    Ptr<Node> node = CreateObject<Node>();
    Stack().Install(node);
    NetDeviceContainer devices = m_links.InstallAccess(node, first.node, first.queue);
    static Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    Routes(node)->SetDefaultRoute(interfaces.GetAddress(1), interfaces.Get(0).second);

    // The way down: each node above the worker's switch learns where the worker is.
    const Ipv4Address own = interfaces.GetAddress(0);
    for (uint32_t number = group.switch_index; number != OLAF_SERVER; number = m_switches[number].spec.upstream)
    {
        const Switch& below = m_switches[number];
        Ptr<Node> above = below.spec.upstream == OLAF_SERVER
                              ? m_serverNode
                              : m_switches[below.spec.upstream].node;
        Routes(above)->AddHostRouteTo(own, below.aboveInterface);
    }

    olaf_engine* engine = nullptr;
    const uint32_t lanes = (group.packet_bytes - HEADER_BYTES) / 4;
    OLAF_MUST(olaf_scenario_worker(m_scenario.get(), worker, lanes, &engine));
    m_workers.push_back(Install(node, engine));
    m_workers.back()->SetPeer(0, InetSocketAddress(m_serverAddress, PORT));
    m_server->SetPeer(worker, InetSocketAddress(own, PORT));
    if (first.notices)
    {
        first.notices->SetPeer(worker, InetSocketAddress(own, PORT));
    }
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

Ptr<OlafEngineApplication>
OlafScenario::GetServer() const
{
    return m_server;
}

const std::vector<Ptr<OlafEngineApplication>>&
OlafScenario::GetWorkers() const
{
    return m_workers;
}

Ptr<NetDevice>
OlafScenario::GetUplink(uint32_t number) const
{
    return m_switches.at(number).uplink;
}

std::string
OlafScenario::RunInOlafSim() const
{
    return OlafText([this](char* json, size_t capacity, size_t* length) {
        return olaf_scenario_run(m_scenario.get(), json, capacity, length);
    });
}

void
OlafScenario::WriteOutcome(std::ostream& os) const
{
    std::vector<const olaf_engine*> engines{m_server->GetEngine()};
    for (const Ptr<OlafEngineApplication>& worker : m_workers)
    {
        engines.push_back(worker->GetEngine());
    }
    std::vector<olaf_fates> switches;
    for (const Ptr<OlafQueue>& queue : m_queues)
    {
        switches.push_back(queue->GetFates());
    }
    const std::string outcome = OlafText([&](char* json, size_t capacity, size_t* length) {
        return olaf_scenario_outcome(m_scenario.get(),
                                     engines.data(),
                                     engines.size(),
                                     switches.data(),
                                     switches.size(),
                                     json,
                                     capacity,
                                     length);
    });
    // An object: its first key is where it was run.
    os << "{\"simulator\":\"ns-3\"," << outcome.substr(1) << "\n";
}

} // namespace ns3
