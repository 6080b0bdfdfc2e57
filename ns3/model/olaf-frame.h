/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_FRAME_H
#define OLAF_FRAME_H

#include "olaf-header.h"

#include "ns3/ipv4-header.h"
#include "ns3/packet.h"
#include "ns3/ppp-header.h"
#include "ns3/udp-header.h"

namespace ns3
{

/**
 * \ingroup olaf
 * \brief A packet as it stands in the queue of a point-to-point device: PPP, IPv4, UDP, datagram.
 */
class OlafFrame
{
  public:
    /**
     * Opens a packet, which stays as it is.
     *
     * \param packet a packet from a device's queue
     * \return whether it is an unfragmented UDP datagram
     */
    bool Open(Ptr<const Packet> packet);

    /** \return the datagram, tags and all */
    Ptr<Packet> GetDatagram() const;

    /**
     * \param datagram another datagram
     * \return a packet with the same headers and tags around it; lengths and, where the
     *         simulation has them, checksums fit it
     */
    Ptr<Packet> Close(Ptr<const Packet> datagram) const;

  private:
    PppHeader m_ppp;        //!< link
    Ipv4Header m_ip;        //!< network
    UdpHeader m_udp;        //!< transport
    Ptr<Packet> m_datagram; //!< payload
};

} // namespace ns3

#endif /* OLAF_FRAME_H */
