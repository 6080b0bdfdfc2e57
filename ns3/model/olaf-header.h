/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_HEADER_H
#define OLAF_HEADER_H

#include "olaf.h"

#include "ns3/header.h"

namespace ns3
{

/**
 * \ingroup olaf
 * \brief The header of an update, byte for byte as Olaf's own switches and workers exchange it.
 *
 * What follows it in the packet are the lanes: four bytes each. libolaf writes and reads it.
 */
class OlafHeader : public Header
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    OlafHeader() = default;

    /**
     * \param update the fields
     * \param laneCount how many lanes follow, at least 1
     */
    OlafHeader(const olaf_update& update, uint32_t laneCount);

    /** \return the fields */
    const olaf_update& GetUpdate() const;

    /** \return how many lanes follow */
    uint32_t GetLaneCount() const;

    /**
     * \return what was found where it was last read: OLAF_RESULT_OK, or why it is no update; a
     *         header that is none takes no bytes off its packet
     */
    olaf_result GetResult() const;

    TypeId GetInstanceTypeId() const override;
    void Print(std::ostream& os) const override;
    uint32_t GetSerializedSize() const override;
    void Serialize(Buffer::Iterator start) const override;
    uint32_t Deserialize(Buffer::Iterator start) override;

  private:
    olaf_update m_update{};                        //!< the fields
    uint32_t m_laneCount{0};                       //!< lanes that follow
    olaf_result m_result{OLAF_RESULT_NOTHING}; //!< what the last reading found
};

} // namespace ns3

#endif /* OLAF_HEADER_H */
