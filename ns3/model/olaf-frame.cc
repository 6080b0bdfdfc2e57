/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-frame.h"

#include "ns3/node.h"

namespace ns3
{

namespace
{
const uint16_t PPP_IPV4 = 0x0021;
const uint8_t PROTOCOL_UDP = 17;
const uint32_t SMALLEST = 2 + 20 + 8;
} // namespace

bool
OlafFrame::Open(Ptr<const Packet> packet)
{
    if (packet->GetSize() < SMALLEST)
    {
        return false;
    }
    m_datagram = packet->Copy();
    m_datagram->RemoveHeader(m_ppp);
    if (m_ppp.GetProtocol() != PPP_IPV4)
    {
        return false;
    }
    m_datagram->RemoveHeader(m_ip);
    if (m_ip.GetProtocol() != PROTOCOL_UDP || !m_ip.IsLastFragment() ||
        m_ip.GetFragmentOffset() != 0 || m_datagram->GetSize() < 8)
    {
        return false;
    }
    m_datagram->RemoveHeader(m_udp);
    return true;
}

Ptr<Packet>
OlafFrame::Close(Ptr<const Packet> datagram) const
{
    // Of the old packet its tags stay, which a packet made anew would not have.
    Ptr<Packet> packet = m_datagram->Copy();
    packet->RemoveAtStart(packet->GetSize());
    packet->AddAtEnd(datagram);

    // A header that was read keeps the checksum it was read with.
    UdpHeader udp;
    udp.SetSourcePort(m_udp.GetSourcePort());
    udp.SetDestinationPort(m_udp.GetDestinationPort());
    Ipv4Header ip = m_ip;
    if (Node::ChecksumEnabled())
    {
        udp.EnableChecksums();
        udp.InitializeChecksum(ip.GetSource(), ip.GetDestination(), PROTOCOL_UDP);
        ip.EnableChecksum();
    }
    packet->AddHeader(udp);
    ip.SetPayloadSize(packet->GetSize());
    packet->AddHeader(ip);
    packet->AddHeader(m_ppp);
    return packet;
}

Ptr<Packet>
OlafFrame::GetDatagram() const
{
    return m_datagram;
}

} // namespace ns3
