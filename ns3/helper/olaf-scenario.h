/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_SCENARIO_H
#define OLAF_SCENARIO_H

#include "olaf-helper.h"

#include "ns3/ipv4-address.h"
#include "ns3/node-container.h"
#include "ns3/olaf-engine-application.h"

#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace ns3
{

/**
 * \ingroup olaf
 * \brief A scenario of olaf-sim's, built of ns-3's nodes, links and protocols: the same JSON in, the
 * same JSON out, and the same updates ready at the same nanoseconds, so that the two can be compared.
 *
 * What differs: here updates are UDP datagrams in IPv4 over PPP, whose 30 bytes are among the
 * scenario's packet_bytes; answers are datagrams of their own, stamped where they pass.
 */
class OlafScenario
{
  public:
    /**
     * Reads a scenario and builds it. One at a time: the simulator is ns-3's only one.
     *
     * \param json the scenario; docs/reference/scenarios.md has the keys
     * \param[out] why what cannot be, where the result is null
     * \return the scenario
     */
    static std::unique_ptr<OlafScenario> Create(const std::string& json, std::string& why);

    ~OlafScenario();
    OlafScenario(const OlafScenario&) = delete;
    OlafScenario& operator=(const OlafScenario&) = delete;

    /**
     * Runs it to its end.
     *
     * \param progress where to tell of it; null: nowhere
     */
    void Run(std::ostream* progress);

    /** \param os where to write what it came to: JSON */
    void WriteOutcome(std::ostream& os) const;

    /** \return what olaf-sim makes of the same scenario: JSON */
    std::string RunInOlafSim() const;

    /** \return the queues before the switches' uplinks, in the scenario's order */
    const std::vector<Ptr<OlafQueue>>& GetQueues() const;

    /** \return the server */
    Ptr<OlafEngineApplication> GetServer() const;

    /** \return the workers, counted through all groups */
    const std::vector<Ptr<OlafEngineApplication>>& GetWorkers() const;

    /**
     * \param number a switch
     * \return the device that its queue belongs to
     */
    Ptr<NetDevice> GetUplink(uint32_t number) const;

  private:
    /** A switch. */
    struct Switch
    {
        olaf_switch_spec spec{};    //!< what it is
        Ptr<Node> node;             //!< itself
        Ptr<OlafQueue> queue;       //!< before its uplink
        Ptr<NetDevice> uplink;      //!< whose queue it is
        Ptr<OlafEngineApplication> notices; //!< to its workers, where the control asks for them
        uint32_t aboveInterface{0}; //!< the upper node's interface towards it
    };

    /** Frees a scenario. */
    struct Free
    {
        /** \param scenario what is freed */
        void operator()(olaf_scenario* scenario) const;
    };

    /** \param scenario what is built */
    explicit OlafScenario(olaf_scenario* scenario);

    /**
     * Builds nodes, links and applications.
     *
     * \param[out] why what cannot be
     * \return whether it could be built
     */
    bool Build(std::string& why);

    /** \param number the switch to build, with all above it */
    void BuildSwitch(uint32_t number);

    /** \param group the group whose next worker is built */
    void BuildWorker(const olaf_group_spec& group);

    /**
     * \param progress where to tell
     * \param percent how much is done
     */
    static void Tell(std::ostream* progress, int percent);

    std::unique_ptr<olaf_scenario, Free> m_scenario;   //!< what it is
    olaf_scenario_shape m_shape{};                     //!< as a whole
    OlafHelper m_links;                                //!< makes links
    Ptr<Node> m_serverNode;                            //!< the server's place
    Ipv4Address m_serverAddress;                       //!< and address
    Ptr<OlafEngineApplication> m_server;               //!< the server
    std::vector<Switch> m_switches;                    //!< by number
    std::vector<Ptr<OlafQueue>> m_queues;              //!< by number
    std::vector<Ptr<OlafEngineApplication>> m_workers; //!< by number
};

} // namespace ns3

#endif /* OLAF_SCENARIO_H */
