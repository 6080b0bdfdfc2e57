/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_WORKER_APPLICATION_H
#define OLAF_WORKER_APPLICATION_H

#include "olaf-header.h"

#include "ns3/application.h"
#include "ns3/event-id.h"
#include "ns3/nstime.h"
#include "ns3/random-variable-stream.h"
#include "ns3/traced-callback.h"

#include <memory>
#include <vector>

namespace ns3
{

class Socket;

/**
 * \ingroup olaf
 * \brief A worker: it has an update ready every so often and sends it towards the server.
 *
 * Updates become ready at multiples of Interval from Phase on, each up to Lateness later, or at the
 * times that SetSchedule() names. Their lanes all hold 1 times their weight, so that every sum of
 * them is known.
 */
class OlafWorkerApplication : public Application
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    OlafWorkerApplication();
    ~OlafWorkerApplication() override;

    /**
     * \param ready when updates are ready, in order; Interval, Phase and Lateness play no part then
     */
    void SetSchedule(std::vector<Time> ready);

    /**
     * \param sender decides when updates are sent, and is freed with the worker; without one each
     *        is sent when it is ready
     */
    void SetSender(olaf_sender* sender);

    /** \return what the sender decided so far; all zero without one */
    olaf_sender_counts GetSenderCounts() const;

    /**
     * \param stream first of the random streams to use
     * \return how many are used
     */
    int64_t AssignStreams(int64_t stream);

    /** \return updates that became ready */
    uint64_t GetReady() const;

    /** \return packets sent */
    uint64_t GetSent() const;

    /** \return updates in the packets sent */
    uint64_t GetContributions() const;

    /** \return answers received */
    uint64_t GetAnswers() const;

    /** \return notices received */
    uint64_t GetNotices() const;

  protected:
    void DoDispose() override;

  private:
    void StartApplication() override;
    void StopApplication() override;

    /** Plans the next update. */
    void Plan();

    /** An update is ready. */
    void Ready();

    /** The time of another try has come. */
    void Retry();

    /** \param decision what the sender decided */
    void Act(const olaf_decision& decision);

    /**
     * Sends what the worker holds.
     *
     * \param contributions updates in it
     * \param oldest when the oldest of them was generated
     * \param newest when the newest of them was generated
     */
    void Send(uint32_t contributions, Time oldest, Time newest);

    /** \param socket where something came */
    void Receive(Ptr<Socket> socket);

    /**
     * \param packet what came
     * \return whether it was an answer, or a notice of what the switch has taken in
     */
    bool Hear(Ptr<const Packet> packet);

    /** Frees a sender. */
    struct Free
    {
        /** \param sender what is freed */
        void operator()(olaf_sender* sender) const;
    };

    Address m_remote;   //!< the server
    uint16_t m_localPort; //!< where answers are heard
    uint32_t m_job;     //!< job
    uint32_t m_cluster; //!< cluster in the job
    uint32_t m_worker;  //!< worker in the job
    uint32_t m_lanes;   //!< lanes of an update
    double m_reward;    //!< reward of every update
    Time m_interval;    //!< between updates
    Time m_phase;       //!< of the first one
    Time m_lateness;    //!< at most so much later

    Ptr<UniformRandomVariable> m_late; //!< draws lateness
    std::unique_ptr<olaf_sender, Free> m_sender; //!< decides when to send
    std::vector<Time> m_schedule;      //!< times given
    bool m_scheduled{false};           //!< whether they were
    size_t m_next{0};                  //!< the next of them
    Time m_tick;                       //!< when the next update would be ready if it were not late
    Ptr<Socket> m_socket;              //!< to the server
    EventId m_event;                   //!< the next update
    EventId m_retry;                   //!< the next try of one that was not sent
    uint32_t m_sequence{0};            //!< of the next packet
    uint64_t m_ready{0};               //!< updates that became ready
    uint64_t m_sent{0};                //!< packets sent
    uint64_t m_contributions{0};       //!< updates in them
    uint64_t m_answers{0};             //!< answers received
    uint64_t m_notices{0};             //!< notices received

    TracedCallback<Ptr<const Packet>> m_traceTx; //!< a packet is sent
    TracedCallback<Ptr<const Packet>> m_traceRx; //!< an answer or a notice came
};

} // namespace ns3

#endif /* OLAF_WORKER_APPLICATION_H */
