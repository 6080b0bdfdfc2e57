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
#include "ns3/olaf-server-application.h"
#include "ns3/olaf-switch-application.h"
#include "ns3/olaf-worker-application.h"

#include <memory>
#include <optional>
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
    Ptr<OlafServerApplication> GetServer() const;

    /** \return the workers, counted through all groups */
    const std::vector<Ptr<OlafWorkerApplication>>& GetWorkers() const;

  private:
    /** A switch. */
    struct Switch
    {
        olaf_switch_spec spec{};    //!< what it is
        Ptr<Node> node;             //!< itself
        Ptr<OlafQueue> queue;       //!< before its uplink
        Ptr<OlafSwitchApplication> teller; //!< tells workers, where the control asks for it
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

    /**
     * \param group the group to build
     * \param[in,out] cluster the next cluster
     * \param[in,out] worker the next worker
     */
    void BuildGroup(const olaf_group_spec& group, uint32_t& cluster, uint32_t& worker);

    /**
     * \param cluster its cluster
     * \param worker the worker to build
     * \param at its switch
     * \param packetBytes bytes of its packets on the link
     */
    void BuildWorker(uint32_t cluster, uint32_t worker, uint32_t at, uint32_t packetBytes);

    /**
     * \param age the age of a cluster or worker; null where nothing of it was delivered
     * \return its time average since anything was delivered, nanoseconds
     */
    std::optional<double> MeanAge(const OlafAge* age) const;

    /** \param os where the clusters are written */
    void WriteClusters(std::ostream& os) const;

    /** \param os where the switches are written */
    void WriteSwitches(std::ostream& os) const;

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
    Ptr<OlafServerApplication> m_server;               //!< the server
    std::vector<Switch> m_switches;                    //!< by number
    std::vector<Ptr<OlafQueue>> m_queues;              //!< by number
    std::vector<Ptr<OlafWorkerApplication>> m_workers; //!< by number
    std::vector<std::string> m_clusterGroups;          //!< each cluster's group
    std::vector<std::vector<uint32_t>> m_members;      //!< each cluster's workers
};

} // namespace ns3

#endif /* OLAF_SCENARIO_H */
