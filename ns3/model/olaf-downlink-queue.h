/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_DOWNLINK_QUEUE_H
#define OLAF_DOWNLINK_QUEUE_H

#include "olaf-queue.h"

#include "ns3/drop-tail-queue.h"

namespace ns3
{

/**
 * \ingroup olaf
 * \brief The transmit queue of a switch's device towards the workers: first in, first out, and the
 * state of the switch's uplink queue is written into every answer that passes (OLAF section 5,
 * reverse-path signaling). Of several switches on the path the most crowded one is told.
 */
class OlafDownlinkQueue : public DropTailQueue<Packet>
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    OlafDownlinkQueue();
    ~OlafDownlinkQueue() override;

    bool Enqueue(Ptr<Packet> packet) override;

  protected:
    void DoDispose() override;

  private:
    Ptr<OlafQueue> m_uplink; //!< whose state is told
};

} // namespace ns3

#endif /* OLAF_DOWNLINK_QUEUE_H */
