/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#include "olaf-sharers-tag.h"

#include <utility>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(OlafSharersTag);

TypeId
OlafSharersTag::GetTypeId()
{
    static TypeId tid = TypeId("ns3::OlafSharersTag")
                            .SetParent<Tag>()
                            .SetGroupName("Olaf")
                            .AddConstructor<OlafSharersTag>();
    return tid;
}

const std::vector<olaf_contributor>&
OlafSharersTag::GetSharers() const
{
    return m_sharers;
}

void
OlafSharersTag::SetSharers(std::vector<olaf_contributor> sharers)
{
    m_sharers = std::move(sharers);
}

TypeId
OlafSharersTag::GetInstanceTypeId() const
{
    return GetTypeId();
}

uint32_t
OlafSharersTag::GetSerializedSize() const
{
    return 4 + 13 * m_sharers.size();
}

void
OlafSharersTag::Serialize(TagBuffer buffer) const
{
    buffer.WriteU32(m_sharers.size());
    for (const olaf_contributor& sharer : m_sharers)
    {
        buffer.WriteU32(sharer.worker);
        buffer.WriteU64(sharer.generated_ns);
        buffer.WriteU8(sharer.part);
    }
}

void
OlafSharersTag::Deserialize(TagBuffer buffer)
{
    m_sharers.resize(buffer.ReadU32());
    for (olaf_contributor& sharer : m_sharers)
    {
        sharer.worker = buffer.ReadU32();
        sharer.generated_ns = buffer.ReadU64();
        sharer.part = buffer.ReadU8();
    }
}

void
OlafSharersTag::Print(std::ostream& os) const
{
    os << "sharers=";
    const char* comma = "";
    for (const olaf_contributor& sharer : m_sharers)
    {
        os << comma << sharer.worker << (sharer.part == OLAF_PART_SUMMED ? "" : "(gone)");
        comma = ",";
    }
}

} // namespace ns3
