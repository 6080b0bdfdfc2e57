/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_QUEUE_H
#define OLAF_QUEUE_H

#include "olaf-sharers-tag.h"
#include "olaf.h"

#include "ns3/queue.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace ns3
{

class OlafFrame;

/**
 * \ingroup olaf
 * \brief The transmit queue of a point-to-point device, in which updates wait as in a switch of
 * Olaf's: what merges with what, what is replaced, filtered or dropped, and who leaves next is
 * decided by libolaf, the very code of the real switch.
 *
 * Traces: "Enqueue" fires for a packet that takes a slot, "Dequeue" for one that goes to the
 * device, "Drop" for one that finds no slot, loses its own or is refused. A packet that an update in the queue
 * absorbs takes no slot: "Merge", "Replace" and "Filter" tell of it. So what was enqueued is what
 * was dequeued and what waits, and what came in is that and the four others.
 *
 * What is no update (other protocols, acknowledgements) goes ahead of updates and takes no slot.
 *
 * The device must have no queue disc above it and no flow control: the layer above would hold or
 * drop a packet before this queue sees what it could be merged with. OlafHelper sees to that.
 */
class OlafQueue : public Queue<Packet>
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    OlafQueue();
    ~OlafQueue() override;

    bool Enqueue(Ptr<Packet> packet) override;
    Ptr<Packet> Dequeue() override;
    Ptr<Packet> Remove() override;
    Ptr<const Packet> Peek() const override;

    /**
     * The packet on the wire has left: its slot is free. A device's "PhyTxEnd" trace calls it; where
     * none does, the device's next look into the queue stands for it.
     *
     * \param packet the packet, of which nothing is asked
     */
    void HasLeft(Ptr<const Packet> packet);

    /** \return what became of every contribution and packet so far */
    olaf_fates GetFates() const;

    /** \return the queue's state now, as answers that pass back carry it */
    olaf_queue_status GetStatus() const;

  protected:
    void DoDispose() override;

  private:
    /** Frees the engine with its queue. */
    struct Free
    {
        /** \param queue what is freed */
        void operator()(olaf_queue* queue) const;
    };

    /** \return the engine, made from the attributes at its first use */
    olaf_queue* Engine() const;

    /**
     * \param packet what is no update
     * \return whether it found room
     */
    bool EnqueueControl(Ptr<Packet> packet);

    /** \param outcome an arrival that took the slot of one that waited */
    void Evict(const olaf_outcome& outcome);

    /**
     * \param waiting a packet that waits
     * \param entry what the engine has in its slot
     * \return the packet as it would leave now
     */
    static Ptr<Packet> Written(Ptr<const Packet> waiting, const olaf_entry& entry);

    /**
     * Gives a waiting packet other contents; traces are not fired.
     *
     * \param waiting the packet
     * \param contents what it becomes
     */
    void Rewrite(Ptr<Packet> waiting, Ptr<const Packet> contents);

    /**
     * \param[out] control whether what leaves next is no update
     * \return what leaves next, with the engine's departure begun and the packet written; nothing
     *         where nothing waits
     */
    std::optional<Iterator> Begin(bool& control);

    std::string m_kind;      //!< discipline
    uint32_t m_slots;        //!< updates it holds
    double m_gate;           //!< reward gate
    Time m_active;           //!< window in which a cluster counts as active
    uint32_t m_maxHops;      //!< switches an update may pass
    uint32_t m_controlLimit; //!< packets that are no updates
    bool m_headKeepsSlot;    //!< whether the packet on the wire has a slot

    mutable std::unique_ptr<olaf_queue, Free> m_engine; //!< the queue itself
    std::map<uint64_t, Iterator> m_waiting;             //!< packets by the engine's entries
    std::deque<Iterator> m_control;                     //!< packets that are no updates
    bool m_onWire{false}; //!< whether an update is on the wire
    Time m_begun;         //!< when it began to leave
    Time m_service;       //!< how long the last one took

    TracedCallback<Ptr<const Packet>> m_traceMerge;   //!< a packet was added to a waiting one
    TracedCallback<Ptr<const Packet>> m_traceReplace; //!< a packet took a waiting one's place
    TracedCallback<Ptr<const Packet>> m_traceFilter;  //!< a packet was below the reward gate
    TracedCallback<Ptr<const Packet>> m_traceTaken;   //!< what workers may be told of
};

} // namespace ns3

#endif /* OLAF_QUEUE_H */
