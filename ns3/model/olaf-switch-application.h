/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_SWITCH_APPLICATION_H
#define OLAF_SWITCH_APPLICATION_H

#include "olaf-queue.h"

#include "ns3/application.h"
#include "ns3/nstime.h"

#include <map>

namespace ns3
{

class Socket;

/**
 * \ingroup olaf
 * \brief A switch's word to the workers below it: what its uplink queue has taken in of their
 * cluster. Only a control that asks for it needs it; all else a switch does is in its queues.
 */
class OlafSwitchApplication : public Application
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    OlafSwitchApplication();
    ~OlafSwitchApplication() override;

    /**
     * \param cluster its cluster
     * \param worker a worker that asks to be told
     * \param address where it hears
     */
    void AddWorker(uint32_t cluster, uint32_t worker, const Address& address);

  protected:
    void DoDispose() override;

  private:
    void StartApplication() override;
    void StopApplication() override;

    /**
     * The queue has taken an update in.
     *
     * \param job its job
     * \param cluster its cluster
     * \param newestNs when its newest contribution was generated
     */
    void Taken(uint32_t job, uint32_t cluster, uint64_t newestNs);

    /**
     * Tells the cluster's workers.
     *
     * \param job the update's job
     * \param cluster its cluster
     * \param newestNs when its newest contribution was generated
     */
    void Tell(uint32_t job, uint32_t cluster, uint64_t newestNs);

    Ptr<OlafQueue> m_uplink; //!< what has taken updates in
    Time m_delay;            //!< from there to its word
    Ptr<Socket> m_socket;    //!< to the workers
    std::map<uint32_t, std::map<uint32_t, Address>> m_workers; //!< by cluster and worker
};

} // namespace ns3

#endif /* OLAF_SWITCH_APPLICATION_H */
