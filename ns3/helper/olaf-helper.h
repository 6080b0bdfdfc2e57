/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_HELPER_H
#define OLAF_HELPER_H

#include "ns3/net-device-container.h"
#include "ns3/nstime.h"
#include "ns3/object-factory.h"
#include "ns3/olaf-queue.h"

#include <string>

namespace ns3
{

class Node;

/**
 * \ingroup olaf
 * \brief Joins nodes by point-to-point links on whose lower ends updates wait in an OlafQueue.
 *
 * Flow control is off on these devices: with it, ns-3's traffic-control layer stops above a full
 * queue and the queue never sees the update that it should merge.
 */
class OlafHelper
{
  public:
    OlafHelper();

    /**
     * \param name an attribute of OlafQueue
     * \param value its value in the queues that are made from now on
     */
    void SetQueueAttribute(const std::string& name, const AttributeValue& value);

    /**
     * Joins a worker, or anything else that sends no faster than its link, with a switch.
     *
     * \param below the worker's node
     * \param above the switch's node
     * \param uplink the switch's uplink, whose state is written into answers; null: none is
     * \return the devices of the two, in that order
     */
    NetDeviceContainer InstallAccess(Ptr<Node> below, Ptr<Node> above, Ptr<OlafQueue> uplink) const;

    /**
     * Joins a switch with the next one, or with the server.
     *
     * \param below the switch's node
     * \param above the next switch's node, or the server's
     * \param bitsPerSecond rate of the way up; the way down is as fast as an access link
     * \param delay from a last bit out to a last bit in, both ways
     * \param aboveUplink the next switch's uplink, whose state is written into answers; null: none
     * \param[out] queue the queue before the way up
     * \return the devices of the two, in that order
     */
    NetDeviceContainer InstallUplink(Ptr<Node> below,
                                     Ptr<Node> above,
                                     uint64_t bitsPerSecond,
                                     Time delay,
                                     Ptr<OlafQueue> aboveUplink,
                                     Ptr<OlafQueue>& queue) const;

  private:
    /**
     * \param uplink whose state its answers carry
     * \return a queue for a device towards the workers
     */
    static Ptr<Queue<Packet>> Downlink(Ptr<OlafQueue> uplink);

    ObjectFactory m_queue; //!< makes uplink queues
};

} // namespace ns3

#endif /* OLAF_HELPER_H */
