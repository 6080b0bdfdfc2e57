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
NS_OBJECT_ENSURE_REGISTERED(OlafAnswerHeader);
NS_OBJECT_ENSURE_REGISTERED(OlafNoticeHeader);

namespace
{

/**
 * libolaf reads whole datagrams, so that a length that lies is found.
 *
 * \param start where the datagram begins; all that follows is of it
 * \return its bytes
 */
std::vector<uint8_t>
Rest(Buffer::Iterator start)
{
    std::vector<uint8_t> bytes(start.GetRemainingSize());
    if (!bytes.empty())
    {
        start.Read(bytes.data(), bytes.size());
    }
    return bytes;
}

} // namespace

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
    const std::vector<uint8_t> bytes = Rest(start);
    size_t laneCount = 0;
    m_result = olaf_update_parse(bytes.data(), bytes.size(), &m_update, &laneCount);
    m_laneCount = static_cast<uint32_t>(laneCount);
    return GetSerializedSize();
}

TypeId
OlafAnswerHeader::GetTypeId()
{
    static TypeId tid = TypeId("ns3::OlafAnswerHeader")
                            .SetParent<Header>()
                            .SetGroupName("Olaf")
                            .AddConstructor<OlafAnswerHeader>();
    return tid;
}

OlafAnswerHeader::OlafAnswerHeader(const olaf_answer& answer)
    : m_answer(answer),
      m_result(OLAF_RESULT_OK)
{
}

const olaf_answer&
OlafAnswerHeader::GetAnswer() const
{
    return m_answer;
}

olaf_result
OlafAnswerHeader::GetResult() const
{
    return m_result;
}

TypeId
OlafAnswerHeader::GetInstanceTypeId() const
{
    return GetTypeId();
}

void
OlafAnswerHeader::Print(std::ostream& os) const
{
    os << "job=" << m_answer.job << " cluster=" << m_answer.cluster
       << " worker=" << m_answer.worker << " acknowledges=" << m_answer.acknowledges
       << " delivered=" << m_answer.delivered_newest_ns << "ns active="
       << m_answer.queue.active_clusters << " used=" << m_answer.queue.used << "/"
       << m_answer.queue.slots << " switches=" << m_answer.queue.switches;
}

uint32_t
OlafAnswerHeader::GetSerializedSize() const
{
    return m_result == OLAF_RESULT_OK ? OLAF_ANSWER_BYTES : 0;
}

void
OlafAnswerHeader::Serialize(Buffer::Iterator start) const
{
    uint8_t bytes[OLAF_ANSWER_BYTES];
    OLAF_MUST(olaf_answer_emit(&m_answer, bytes, sizeof bytes));
    start.Write(bytes, sizeof bytes);
}

uint32_t
OlafAnswerHeader::Deserialize(Buffer::Iterator start)
{
    const std::vector<uint8_t> bytes = Rest(start);
    m_result = olaf_answer_parse(bytes.data(), bytes.size(), &m_answer);
    return GetSerializedSize();
}

TypeId
OlafNoticeHeader::GetTypeId()
{
    static TypeId tid = TypeId("ns3::OlafNoticeHeader")
                            .SetParent<Header>()
                            .SetGroupName("Olaf")
                            .AddConstructor<OlafNoticeHeader>();
    return tid;
}

OlafNoticeHeader::OlafNoticeHeader(const olaf_notice& notice)
    : m_notice(notice),
      m_result(OLAF_RESULT_OK)
{
}

const olaf_notice&
OlafNoticeHeader::GetNotice() const
{
    return m_notice;
}

olaf_result
OlafNoticeHeader::GetResult() const
{
    return m_result;
}

TypeId
OlafNoticeHeader::GetInstanceTypeId() const
{
    return GetTypeId();
}

void
OlafNoticeHeader::Print(std::ostream& os) const
{
    os << "job=" << m_notice.job << " cluster=" << m_notice.cluster
       << " worker=" << m_notice.worker << " taken=" << m_notice.taken_newest_ns << "ns";
}

uint32_t
OlafNoticeHeader::GetSerializedSize() const
{
    return m_result == OLAF_RESULT_OK ? OLAF_NOTICE_BYTES : 0;
}

void
OlafNoticeHeader::Serialize(Buffer::Iterator start) const
{
    uint8_t bytes[OLAF_NOTICE_BYTES];
    OLAF_MUST(olaf_notice_emit(&m_notice, bytes, sizeof bytes));
    start.Write(bytes, sizeof bytes);
}

uint32_t
OlafNoticeHeader::Deserialize(Buffer::Iterator start)
{
    const std::vector<uint8_t> bytes = Rest(start);
    m_result = olaf_notice_parse(bytes.data(), bytes.size(), &m_notice);
    return GetSerializedSize();
}

} // namespace ns3
