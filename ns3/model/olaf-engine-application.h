/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_ENGINE_APPLICATION_H
#define OLAF_ENGINE_APPLICATION_H

#include "olaf.h"

#include "ns3/address.h"
#include "ns3/application.h"
#include "ns3/event-id.h"
#include "ns3/traced-callback.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ns3
{

class Packet;
class Socket;

/**
 * \ingroup olaf
 * \brief A whole engine of Olaf's on a node: a switch, a parameter server, a worker, or an end of a
 * scenario. libolaf makes every decision; this application has its sockets and its clock.
 *
 * Port 0 of the engine is UDP port Port of the node, port 1 the next one, and so on. An engine knows
 * its peers by numbers: Remote is peer 0, SetPeer() names others, and whoever else sends something
 * gets the next number.
 */
class OlafEngineApplication : public Application
{
  public:
    /**
     * Of the trace "Event".
     *
     * \param event the event: a JSON object with its name under "event"
     */
    typedef void (*EventTracedCallback)(const std::string& event);

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    OlafEngineApplication();
    ~OlafEngineApplication() override;

    /** \param engine what runs here instead of an engine of Role; freed with the application */
    void SetEngine(olaf_engine* engine);

    /** \return what runs here, made from Role and Config at its first use */
    olaf_engine* GetEngine() const;

    /**
     * \param number the engine's number for a peer
     * \param address where the peer is: an InetSocketAddress
     */
    void SetPeer(uint32_t number, const Address& address);

    /**
     * Hands the engine a datagram that came by another way than its sockets, as if from peer 0.
     *
     * \param datagram Olaf's bytes
     */
    void Handle(Ptr<const Packet> datagram);

    /**
     * A worker joins its job.
     *
     * \param model the parameters that it offers as the first model
     */
    void Join(const std::vector<float>& model);

    /**
     * A worker sends an update.
     *
     * \param update a value for each parameter
     * \param reward its reward
     * \param weight its weight
     * \return whether the worker could: it has joined, and the update is as long as the model
     */
    bool Push(const std::vector<float>& update, double reward = 0, double weight = 1);

    /**
     * Copies the newest model that came to a worker.
     *
     * \param[in,out] model the parameters, as many as the model has; stays where nothing is newer
     * \param newerThan the version that the caller has
     * \return the version of the copy; 0: there is no newer one
     */
    uint32_t Pull(std::vector<float>& model, uint32_t newerThan = 0);

    /** A worker leaves its job. */
    void Leave();

    /**
     * Counts datagrams that no other application of Olaf gets: the engine refused or would forward
     * them, or a receiver has no address or no route. The trace source Drop has each of them.
     *
     * \return how many there were
     */
    uint64_t GetDropped() const;

    /** \return what the engine counted so far: JSON, docs/reference/statistics.md has the keys */
    std::string GetReport() const;

  protected:
    void DoDispose() override;

  private:
    void StartApplication() override;
    void StopApplication() override;

    /** \param socket where something came */
    void Receive(Ptr<Socket> socket);

    /**
     * \param packet a datagram
     * \param from where it came in
     */
    void Take(Ptr<const Packet> packet, const olaf_source& from);

    /**
     * Counts and traces a datagram that ends here.
     *
     * \param packet the datagram
     * \param why the reason, for the log
     */
    void Drop(Ptr<const Packet> packet, const std::string& why);

    /** The engine's time has come. */
    void Timeout();

    /** Takes what the engine gives out after an input: events, datagrams, the next timeout. */
    void Drain();

    /** \param port a port whose datagrams leave */
    void Transmit(uint16_t port);

    /** Plans the engine's next timeout. */
    void Plan();

    /** Frees an engine. */
    struct Free
    {
        /** \param engine what is freed */
        void operator()(olaf_engine* engine) const;
    };

    std::string m_role;   //!< of the engine
    std::string m_config; //!< its configuration: JSON
    uint32_t m_life;      //!< names this life of it
    uint16_t m_port;      //!< UDP port of the engine's port 0
    Address m_remote;     //!< peer 0

    mutable std::unique_ptr<olaf_engine, Free> m_engine; //!< the engine itself
    std::vector<Ptr<Socket>> m_sockets;                  //!< by the engine's ports
    std::map<uint32_t, Address> m_peers;                 //!< by the engine's numbers
    std::map<Address, uint32_t> m_numbers;               //!< the other way round
    EventId m_timeout;                                   //!< the engine's next timeout
    uint64_t m_timeoutNs{0};                             //!< when that is

    TracedCallback<Ptr<const Packet>> m_traceTx;        //!< a datagram leaves
    TracedCallback<Ptr<const Packet>> m_traceRx;        //!< the engine took a datagram in
    TracedCallback<Ptr<const Packet>> m_traceDrop;      //!< a datagram ends here
    uint64_t m_dropped{0};                              //!< datagrams that ended here
    TracedCallback<const std::string&> m_traceEvent;    //!< something happened
};

} // namespace ns3

#endif /* OLAF_ENGINE_APPLICATION_H */
