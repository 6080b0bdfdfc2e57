/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-header.h"

#include "olaf-error.h"

#include <vector>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(OlafHeader);

TypeId
OlafHeader::GetTypeId()
{
    static TypeId tid = TypeId("ns3::OlafHeader")
                            .SetParent<Header>()
                            .SetGroupName("Olaf")
                            .AddConstructor<OlafHeader>();
    return tid;
}

OlafHeader::OlafHeader(const olaf_update& update, uint32_t laneCount)
    : m_update(update),
      m_laneCount(laneCount),
      m_result(OLAF_RESULT_OK)
{
}

const olaf_update&
OlafHeader::GetUpdate() const
{
    return m_update;
}

uint32_t
OlafHeader::GetLaneCount() const
{
    return m_laneCount;
}

olaf_result
OlafHeader::GetResult() const
{
    return m_result;
}

TypeId
OlafHeader::GetInstanceTypeId() const
{
    return GetTypeId();
}

void
OlafHeader::Print(std::ostream& os) const
{
    os << "job=" << m_update.job << " cluster=" << m_update.cluster
       << " worker=" << m_update.worker << " sequence=" << m_update.sequence << " segment="
       << m_update.segment << "/" << m_update.segments
       << " contributors=" << m_update.contributors << " weight=" << m_update.weight
       << " reward=" << m_update.reward << " hops=" << m_update.hops
       << " generated=" << m_update.generated_oldest_ns << ".." << m_update.generated_newest_ns
       << "ns lanes=" << m_laneCount;
}

uint32_t
OlafHeader::GetSerializedSize() const
{
    return m_result == OLAF_RESULT_OK ? OLAF_UPDATE_HEADER_BYTES : 0;
}

void
OlafHeader::Serialize(Buffer::Iterator start) const
{
    uint8_t bytes[OLAF_UPDATE_HEADER_BYTES];
    OLAF_MUST(olaf_update_emit_header(&m_update, m_laneCount, bytes, sizeof bytes));
    start.Write(bytes, sizeof bytes);
}

uint32_t
OlafHeader::Deserialize(Buffer::Iterator start)
{
    // libolaf reads whole datagrams, so that a length that lies is found.
    std::vector<uint8_t> bytes(start.GetRemainingSize());
    if (!bytes.empty())
    {
        start.Read(bytes.data(), bytes.size());
    }
    size_t laneCount = 0;
    m_result = olaf_update_parse(bytes.data(), bytes.size(), &m_update, &laneCount);
    m_laneCount = static_cast<uint32_t>(laneCount);
    return GetSerializedSize();
}

} // namespace ns3
