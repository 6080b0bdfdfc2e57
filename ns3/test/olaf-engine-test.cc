/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-test.h"

#include "ns3/error-model.h"
#include "ns3/inet-socket-address.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-address-helper.h"
#include "ns3/node.h"
#include "ns3/olaf-engine-application.h"
#include "ns3/olaf-header.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <map>

using namespace ns3;

namespace
{

const uint32_t WORKERS = 6;
const uint32_t CLUSTERS = 3;
const uint16_t PORT = 5555;
const std::vector<float> FIRST_MODEL{1, 2, 3, 4};

/** Real workers, a real switch and a real server on ns-3's links. */
class TrainingTest : public TestCase
{
  public:
    /** \param loss share of the packets that every link loses */
    explicit TrainingTest(double loss)
        : TestCase(loss > 0 ? "on links that lose packets every model is the sum of what arrived"
                            : "workers join, push through a switch and pull the exact sum"),
          m_loss(loss)
    {
    }

  private:
    void DoRun() override
    {
        Build();
        for (uint32_t i = 0; i < WORKERS; i++)
        {
            Simulator::Schedule(MilliSeconds(1 + i), &TrainingTest::Join, this, i);
        }
        // The links have room again for the last second: all settles.
        Simulator::Stop(Seconds(5));
        Simulator::Run();
        Check();
        Simulator::Destroy();
    }

    /** Nodes, links and applications. */
    void Build()
    {
        m_expected[0] = FIRST_MODEL[0];
        Ptr<Node> top = CreateObject<Node>();
        Ptr<Node> middle = CreateObject<Node>();
        NodeContainer below(WORKERS);
        InternetStackHelper().Install(NodeContainer(top, middle, below));
        Ipv4AddressHelper addresses("10.1.0.0", "255.255.255.0");
        const Ipv4Address server = Link(middle, top, addresses);
        m_server = Install(top, "server", R"({"step":"sum","staleness_power":0})", Address());
        m_server->TraceConnectWithoutContext("Rx", MakeCallback(&TrainingTest::Receive, this));
        // Its own pace: the queue waits in the switch, and what waits there merges.
        m_switch = Install(middle,
                           "switch",
                           R"({"slots":4,"uplink_bps":200000})",
                           InetSocketAddress(server, PORT));
        for (uint32_t i = 0; i < WORKERS; i++)
        {
            const Ipv4Address above = Link(below.Get(i), middle, addresses);
            const std::string config = R"({"cluster":)" + std::to_string(i % CLUSTERS) +
                                       R"(,"worker":)" + std::to_string(i) + "}";
            // The switch's port towards workers is its second one.
            m_workers.push_back(
                Install(below.Get(i), "worker", config, InetSocketAddress(above, PORT + 1)));
        }
    }

    /**
     * \param below the lower node
     * \param above the upper node
     * \param addresses the addresses of the next link
     * \return the upper node's address
     */
    Ipv4Address Link(Ptr<Node> below, Ptr<Node> above, Ipv4AddressHelper& addresses)
    {
        PointToPointHelper links;
        links.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
        links.SetChannelAttribute("Delay", StringValue("500us"));
        NetDeviceContainer devices = links.Install(below, above);
        for (uint32_t i = 0; i < 2; i++)
        {
            Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
            errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            errors->SetRate(m_loss);
            errors->AssignStreams(++m_streams);
            devices.Get(i)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
            devices.Get(i)->TraceConnectWithoutContext("PhyRxDrop",
                                                       MakeCallback(&TrainingTest::Lose, this));
        }
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        return interfaces.GetAddress(1);
    }

    /**
     * \param node where it runs
     * \param role the engine's role
     * \param config its configuration
     * \param remote its peer 0
     * \return its application
     */
    Ptr<OlafEngineApplication> Install(Ptr<Node> node,
                                       const std::string& role,
                                       const std::string& config,
                                       const Address& remote)
    {
        Ptr<OlafEngineApplication> application = CreateObject<OlafEngineApplication>();
        application->SetAttribute("Role", StringValue(role));
        application->SetAttribute("Config", StringValue(config));
        application->SetAttribute("Port", UintegerValue(PORT));
        application->SetAttribute("Remote", AddressValue(remote));
        application->TraceConnectWithoutContext("Event",
                                                MakeCallback(&TrainingTest::Happen, this));
        node->AddApplication(application);
        return application;
    }

    /** \param worker a worker that joins and begins to push */
    void Join(uint32_t worker)
    {
        m_workers[worker]->Join(FIRST_MODEL);
        Simulator::Schedule(MilliSeconds(20), &TrainingTest::Push, this, worker);
    }

    /** \param worker a worker that has an update ready */
    void Push(uint32_t worker)
    {
        Pull(worker);
        // Each worker's values are its own, and whole numbers: sums of them are exact.
        m_pushed += m_workers[worker]->Push(std::vector<float>(4, worker + 1)) ? 1 : 0;
        if (Simulator::Now() < Seconds(4))
        {
            Simulator::Schedule(MilliSeconds(10), &TrainingTest::Push, this, worker);
        }
    }

    /** \param worker a worker that looks for a newer model */
    void Pull(uint32_t worker)
    {
        std::vector<float> model(FIRST_MODEL.size());
        if (const uint32_t version = m_workers[worker]->Pull(model))
        {
            m_pulled++;
            const auto expected = m_expected.find(version - m_firstVersion);
            const bool known = expected != m_expected.end();
            m_wrong += known && model[0] == expected->second ? 0 : 1;
            m_wrong += model[3] - model[0] == FIRST_MODEL[3] - FIRST_MODEL[0] ? 0 : 1;
        }
    }

    /** \param packet what the server took in */
    void Receive(Ptr<const Packet> packet)
    {
        OlafHeader header;
        Ptr<Packet> rest = packet->Copy();
        rest->RemoveHeader(header);
        if (header.GetResult() != OLAF_RESULT_OK)
        {
            return;
        }
        uint8_t first[4];
        rest->CopyData(first, sizeof first);
        float lane = 0;
        olaf_lanes_read(first, 1, &lane);
        // Each update is one version more.
        const float before = m_expected.rbegin()->second;
        m_expected[m_expected.size()] = before + lane;
        m_delivered += header.GetUpdate().contributors;
        m_merges += header.GetUpdate().contributors > 1 ? 1 : 0;
    }

    /** \param packet what a link lost */
    void Lose(Ptr<const Packet> packet)
    {
        m_lost++;
    }

    /** \param event what happened somewhere: JSON */
    void Happen(const std::string& event)
    {
        m_joined += event.find("\"joined\"") != std::string::npos ? 1 : 0;
    }

    /** What it came to. */
    void Check()
    {
        const std::string server = m_server->GetReport();
        const std::string middle = m_switch->GetReport();
        uint64_t sent = 0;
        for (uint32_t i = 0; i < WORKERS; i++)
        {
            sent += OlafNumber(m_workers[i]->GetReport(), "sent");
        }
        const uint64_t delivered =
            OlafNumber(server, "delivered_alone") + OlafNumber(server, "delivered_merged");
        uint64_t received = 0;
        uint64_t left = 0;
        for (uint32_t cluster = 0; cluster < CLUSTERS; cluster++)
        {
            // The report's first values of these names are those of its clusters.
            const auto count = [&](const char* key) { return OlafNumber(middle, key, cluster); };
            const uint64_t alone = count("sent_alone");
            const uint64_t merged = count("merged");
            const uint64_t gone = count("replaced") + count("filtered") + count("dropped") +
                                  count("rejected") + count("waiting");
            NS_TEST_EXPECT_MSG_EQ(count("received"), alone + merged + gone, "each has one fate");
            received += count("received");
            left += alone + merged;
        }
        NS_TEST_EXPECT_MSG_EQ((m_joined >= WORKERS), true, "all have joined");
        NS_TEST_EXPECT_MSG_GT(m_pushed, 2000, "and pushed");
        NS_TEST_EXPECT_MSG_GT(m_merges, 100, "updates merged in the switch");
        NS_TEST_EXPECT_MSG_GT(m_pulled, 1000, "models came back");
        NS_TEST_EXPECT_MSG_EQ(m_wrong, 0, "each is the exact sum of its version's updates");
        NS_TEST_EXPECT_MSG_EQ(delivered, m_delivered, "the server counts what it took in");
        if (m_loss > 0)
        {
            NS_TEST_EXPECT_MSG_GT(m_lost, 100, "the links lost packets");
            NS_TEST_EXPECT_MSG_LT(received, sent, "some of them updates");
            NS_TEST_EXPECT_MSG_LT(delivered, left, "on each link");
        }
        else
        {
            NS_TEST_EXPECT_MSG_EQ(m_lost, 0, "the links lost nothing");
            NS_TEST_EXPECT_MSG_EQ(received, sent, "so the switch received what was sent");
            NS_TEST_EXPECT_MSG_EQ(delivered, left, "and the server what left the switch");
        }
    }

    double m_loss;                                     //!< on every link
    int64_t m_streams{0};                              //!< random streams that are used
    Ptr<OlafEngineApplication> m_server;               //!< the server
    Ptr<OlafEngineApplication> m_switch;               //!< the switch
    std::vector<Ptr<OlafEngineApplication>> m_workers; //!< the workers
    std::map<uint32_t, float> m_expected; //!< first parameter after each number of updates
    uint32_t m_firstVersion{1};           //!< version of the first model
    uint64_t m_joined{0};                 //!< joins that were told
    uint64_t m_pushed{0};                 //!< updates that workers took
    uint64_t m_pulled{0};                 //!< models that workers pulled
    uint64_t m_wrong{0};                  //!< models that are not the sum of their updates
    uint64_t m_delivered{0};              //!< contributions that the server took in
    uint64_t m_merges{0};                 //!< updates of several at the server
    uint64_t m_lost{0};                   //!< packets that links lost
};

/** Whole engines. */
class OlafEngineTestSuite : public TestSuite
{
  public:
    OlafEngineTestSuite()
        : TestSuite("olaf-engine", SYSTEM)
    {
        AddTestCase(new TrainingTest(0), TestCase::QUICK);
        AddTestCase(new TrainingTest(0.05), TestCase::QUICK);
    }
};

OlafEngineTestSuite g_olafEngineTestSuite; //!< registers itself

} // namespace
