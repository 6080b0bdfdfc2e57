/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_SHARERS_TAG_H
#define OLAF_SHARERS_TAG_H

#include "olaf.h"

#include "ns3/tag.h"

#include <vector>

namespace ns3
{

/**
 * \ingroup olaf
 * \brief Which workers' updates met in this one.
 *
 * Not on the wire. A real switch remembers who shared in what it sent and fans the answer out; in a
 * simulation the packet may say so itself, and the server answers each sharer.
 */
class OlafSharersTag : public Tag
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    /** \return who, in the order of their coming */
    const std::vector<olaf_contributor>& GetSharers() const;

    /** \param sharers who, in the order of their coming */
    void SetSharers(std::vector<olaf_contributor> sharers);

    TypeId GetInstanceTypeId() const override;
    uint32_t GetSerializedSize() const override;
    void Serialize(TagBuffer buffer) const override;
    void Deserialize(TagBuffer buffer) override;
    void Print(std::ostream& os) const override;

  private:
    std::vector<olaf_contributor> m_sharers; //!< who
};

} // namespace ns3

#endif /* OLAF_SHARERS_TAG_H */
