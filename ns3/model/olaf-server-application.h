/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_SERVER_APPLICATION_H
#define OLAF_SERVER_APPLICATION_H

#include "olaf-header.h"
#include "olaf-sharers-tag.h"

#include "ns3/application.h"
#include "ns3/nstime.h"
#include "ns3/traced-callback.h"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace ns3
{

class Socket;

/**
 * \ingroup olaf
 * \brief Age-of-Model of one cluster or worker, as libolaf takes it.
 */
class OlafAge
{
  public:
    OlafAge();

    /** \param generatedNs when the newest contribution of a delivery was generated */
    void Deliver(uint64_t generatedNs);

    /**
     * Counts the age from a time on, as the time since then until something is delivered; changes
     * nothing where it is counted already.
     * \param startNs that time
     */
    void ObserveFrom(uint64_t startNs);

    /** \return time average from when it is counted until now, nanoseconds */
    std::optional<double> GetMean() const;

    /** \return mean of the peaks, nanoseconds */
    std::optional<double> GetPeakMean() const;

    /** \return the highest peak, nanoseconds; 0 where there is none */
    uint64_t GetPeakMax() const;

    /** \return generation time of the newest contribution; 0 before any */
    uint64_t GetNewest() const;

  private:
    /** Frees an age. */
    struct Free
    {
        /** \param age what is freed */
        void operator()(olaf_age* age) const;
    };

    std::unique_ptr<olaf_age, Free> m_age; //!< the age itself
    bool m_heard{false};                   //!< whether anything was delivered
    uint64_t m_newest{0};                  //!< newest generation time delivered
    uint64_t m_peakMax{0};                 //!< highest peak
};

/**
 * \ingroup olaf
 * \brief The parameter server's end: takes ages and answers whoever shared in what it received.
 */
class OlafServerApplication : public Application
{
  public:
    /** What came of a cluster. */
    struct Cluster
    {
        OlafAge age;               //!< its age
        uint64_t packets{0};       //!< packets that came
        uint64_t contributions{0}; //!< contributions in them
    };

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    OlafServerApplication();
    ~OlafServerApplication() override;

    /**
     * \param cluster its cluster
     * \param worker a worker
     * \param address where it hears answers; without one it hears none
     */
    void AddWorker(uint32_t cluster, uint32_t worker, const Address& address);

    /** \return what came of each cluster of which anything came */
    const std::map<uint32_t, Cluster>& GetClusters() const;

    /**
     * \param worker a worker
     * \return the age of its own newest contribution; null before any
     */
    const OlafAge* GetWorkerAge(uint32_t worker) const;

    /** \return when anything came first; from then on ages are counted */
    std::optional<uint64_t> GetFirstDeliveryNs() const;

    /** \return how many packets held 0, 1, 2, .. contributions */
    const std::vector<uint64_t>& GetFanIn() const;

  protected:
    void DoDispose() override;

  private:
    void StartApplication() override;
    void StopApplication() override;

    /** \param socket where something came */
    void Receive(Ptr<Socket> socket);

    /**
     * \param update what was delivered
     * \param sharers who had a part in it
     */
    void Answer(olaf_update update, std::vector<OlafSharer> sharers);

    uint16_t m_port;     //!< where it listens
    Time m_answerDelay;  //!< from a delivery to its answer
    bool m_answers;      //!< whether it answers
    bool m_toCluster;    //!< whether a whole cluster hears
    Ptr<Socket> m_socket; //!< from and to the workers

    /** A worker's place. */
    struct Worker
    {
        uint32_t cluster; //!< its cluster
        Address address;  //!< where it hears
    };

    std::map<uint32_t, Worker> m_workers;        //!< those that hear answers
    std::map<uint32_t, Cluster> m_clusters;      //!< by cluster
    std::map<uint32_t, OlafAge> m_workerAges;    //!< by worker
    /** Frees ages. */
    struct Free
    {
        /** \param ages what is freed */
        void operator()(olaf_recent_ages* ages) const;
    };

    std::unique_ptr<olaf_recent_ages, Free> m_recent; //!< ages of late, as answers tell them
    std::vector<uint64_t> m_fanIn;               //!< packets by contributions
    std::optional<uint64_t> m_firstDeliveryNs;   //!< when anything came first
    uint32_t m_version{0};                       //!< model version: one more with each delivery
    TracedCallback<Ptr<const Packet>> m_traceRx; //!< an update came
};

} // namespace ns3

#endif /* OLAF_SERVER_APPLICATION_H */
