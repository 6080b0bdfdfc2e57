/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-test.h"

#include "ns3/olaf-scenario.h"
#include "ns3/test.h"

#include <cmath>
#include <sstream>

using namespace ns3;

namespace
{

/** Table 2's topology in short: what a test may change of it. */
struct Setting
{
    std::string queue{"olaf"};    //!< discipline
    bool keeps{true};             //!< HeadKeepsSlot
    uint64_t slowIntervalMs{100}; //!< of the second group
    std::string control{"off"};   //!< senders' control
    uint64_t seed{1};             //!< fixes every draw
    uint32_t packetBytes{1030};   //!< on the link

    /** \return the scenario */
    std::string Json() const
    {
        std::ostringstream json;
        json << R"({"seed":)" << seed << R"(,"duration_ns":12000000000,"head_keeps_slot":)"
             << (keeps ? "true" : "false") << R"(,"control":{"kind":")" << control
             << R"("},"switches":[)";
        for (const char* name : {"SW1", "SW2"})
        {
            json << R"({"name":")" << name << R"(","queue":")" << queue
                 << R"(","slots":5,"rate_bps":1900000,"upstream":"SW3"},)";
        }
        json << R"({"name":"SW3","queue":")" << queue
             << R"(","slots":8,"rate_bps":1000000}],"groups":[)";
        for (int group = 1; group <= 2; group++)
        {
            json << (group == 1 ? "" : ",") << R"({"name":"S)" << group << R"(","switch":"SW)"
                 << group << R"(","clusters":5,"workers":10,"interval_ns":)"
                 << (group == 1 ? 100 : slowIntervalMs) * 1000000
                 << R"(,"late_ns":100000000,"packet_bytes":)" << packetBytes << "}";
        }
        json << "]}";
        return json.str();
    }
};

/** The same scenario in ns-3 and in olaf-sim. */
class AgreementTest : public TestCase
{
  public:
    /**
     * \param name what it is about
     * \param setting the scenario
     */
    AgreementTest(const std::string& name, const Setting& setting)
        : TestCase("ns-3 and olaf-sim agree: " + name),
          m_setting(setting)
    {
    }

  private:
    void DoRun() override
    {
        std::string why;
        std::unique_ptr<OlafScenario> scenario = OlafScenario::Create(m_setting.Json(), why);
        NS_TEST_ASSERT_MSG_NE(scenario.get(), nullptr, why);
        scenario->Run(nullptr);
        std::ostringstream here;
        scenario->WriteOutcome(here);
        const std::string there = scenario->RunInOlafSim();

        Agree(here.str(), there, "generated", 0);
        Agree(here.str(), there, "delivered", 0);
        if (m_setting.control == "fair")
        {
            // Who sends hangs on who heard what a microsecond ago: draws differ, means do not.
            m_tolerance = 0.05;
        }
        else
        {
            Agree(here.str(), there, "packets_merged", 0);
            Agree(here.str(), there, "packets_dropped", 0);
        }
        Agree(here.str(), there, "packets_delivered", 0);
        // Not of FIFO: one packet that comes a nanosecond before a slot is free, and not after,
        // decides for seconds whose packets find the queue full.
        for (int cluster = 0; cluster < 10 && m_setting.queue != "fifo"; cluster++)
        {
            Agree(here.str(), there, "age_mean_ns", cluster);
            if (m_setting.control != "fair")
            {
                Agree(here.str(), there, "worker_age_mean_ns", cluster);
            }
        }
        NS_TEST_EXPECT_MSG_GT(OlafNumber(there, "packets_delivered"), 1000, "the link was busy");
        const bool merges = m_setting.queue != "fifo" && m_setting.control != "fair";
        NS_TEST_EXPECT_MSG_EQ((OlafNumber(there, "packets_merged") > 1000), merges, "olaf merges");

        // What no fate names is in a queue or on a link, of which there are few.
        uint64_t waiting = 0;
        for (const Ptr<OlafQueue>& queue : scenario->GetQueues())
        {
            waiting += queue->GetFates().waiting;
        }
        NS_TEST_EXPECT_MSG_EQ((OlafNumber(here.str(), "on_the_way") >= waiting), true, "fates add up");
        NS_TEST_EXPECT_MSG_EQ((OlafNumber(here.str(), "on_the_way") < waiting + 100), true, "to all");
    }

    /**
     * \param here what ns-3 says
     * \param there what olaf-sim says
     * \param key of what
     * \param nth which of that name
     */
    void Agree(const std::string& here, const std::string& there, const std::string& key, int nth)
    {
        const double a = OlafNumber(here, key, nth);
        const double b = OlafNumber(there, key, nth);
        NS_TEST_EXPECT_MSG_EQ_TOL(a, b, m_tolerance * std::abs(b), key + " of " + m_setting.Json());
    }

    Setting m_setting;        //!< the scenario
    double m_tolerance{0.01}; //!< relative
};

/** What cannot be is said. */
class RefusalTest : public TestCase
{
  public:
    RefusalTest()
        : TestCase("a scenario that cannot be says why")
    {
    }

  private:
    void DoRun() override
    {
        Setting setting;
        setting.queue = "lifo";
        Refused(setting, "\"lifo\" must be olaf, fifo");
        setting.queue = "olaf";
        setting.packetBytes = 1031;
        Refused(setting, "packet_bytes is 1031, which ns-3 cannot send: 126");
        std::string why;
        NS_TEST_ASSERT_MSG_EQ(OlafScenario::Create("{", why).get(), nullptr, "it is no JSON");
        NS_TEST_ASSERT_MSG_NE(why.find("EOF"), std::string::npos, why);
    }

    /**
     * \param setting what cannot be
     * \param expected what is said of it
     */
    void Refused(const Setting& setting, const std::string& expected)
    {
        std::string why;
        NS_TEST_ASSERT_MSG_EQ(OlafScenario::Create(setting.Json(), why).get(), nullptr, expected);
        NS_TEST_ASSERT_MSG_NE(why.find(expected), std::string::npos, why);
    }
};

/** Whole scenarios. */
class OlafScenarioTestSuite : public TestSuite
{
  public:
    OlafScenarioTestSuite()
        : TestSuite("olaf-scenario", SYSTEM)
    {
        AddTestCase(new RefusalTest, TestCase::QUICK);
        for (const char* queue : {"fifo", "olaf", "freshest"})
        {
            for (const bool keeps : {true, false})
            {
                Setting setting;
                setting.queue = queue;
                setting.keeps = keeps;
                setting.slowIntervalMs = 300;
                setting.seed = keeps ? 1 : 2;
                const std::string name = std::string(queue) + (keeps ? ", locked head" : ", free head");
                AddTestCase(new AgreementTest(name, setting), TestCase::QUICK);
            }
        }
        Setting paper;
        paper.control = "paper";
        AddTestCase(new AgreementTest("olaf, the paper's control", paper), TestCase::QUICK);
        Setting fair;
        fair.control = "fair";
        AddTestCase(new AgreementTest("olaf, the fair control", fair), TestCase::QUICK);
    }
};

OlafScenarioTestSuite g_olafScenarioTestSuite; //!< registers itself

} // namespace
