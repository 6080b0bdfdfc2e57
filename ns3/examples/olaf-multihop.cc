/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

/*
 * Workers in clusters, a tree of switches, one server (OLAF section 8.3, Figure 9):
 *
 *   10 workers x 5 clusters -- SW1 --+
 *                                    +-- SW3 -- parameter server
 *   10 workers x 5 clusters -- SW2 --+
 *
 * or whatever the scenario says. Reads a scenario of olaf-sim's (JSON) and writes what it came to,
 * JSON of the same keys as `olaf simulate` writes.
 */

#include "ns3/command-line.h"
#include "ns3/olaf-scenario.h"

#include <fstream>
#include <iostream>
#include <sstream>

using namespace ns3;

int
main(int argc, char* argv[])
{
    // A link's time for a packet is rounded down to this: in nanoseconds 40 s of packets would lose
    // microseconds against olaf-sim, which keeps the rest.
    Time::SetResolution(Time::PS);
    std::string path;
    std::string out = "-";
    bool progress = false;
    bool olafSim = false;
    CommandLine cmd(__FILE__);
    cmd.Usage("Runs a scenario of queues, workers and a server in ns-3; JSON in, JSON out.\n\n"
              "  olaf-multihop --scenario=examples/table2.json --progress\n"
              "  python make-scenario.py | olaf-multihop --scenario=-");
    cmd.AddValue("scenario", "file with the scenario (docs/reference/scenarios.md); -: stdin", path);
    cmd.AddValue("out", "file for the outcome; -: stdout", out);
    cmd.AddValue("progress", "tell on stderr how far it is", progress);
    cmd.AddValue("olafSim", "run it in olaf-sim instead of ns-3", olafSim);
    cmd.Parse(argc, argv);

    std::ostringstream json;
    if (path == "-")
    {
        json << std::cin.rdbuf();
    }
    else
    {
        std::ifstream file(path);
        if (!file)
        {
            std::cerr << "olaf-multihop: cannot read --scenario=" << path
                      << ": name a file, or - for stdin\n";
            return 2;
        }
        json << file.rdbuf();
    }
    std::string why;
    const std::unique_ptr<OlafScenario> scenario = OlafScenario::Create(json.str(), why);
    if (!scenario)
    {
        std::cerr << "olaf-multihop: " << path << ": " << why << "\n";
        return 2;
    }
    std::ostringstream outcome;
    if (olafSim)
    {
        outcome << scenario->RunInOlafSim() << "\n";
    }
    else
    {
        scenario->Run(progress ? &std::cerr : nullptr);
        scenario->WriteOutcome(outcome);
    }
    if (out == "-")
    {
        std::cout << outcome.str();
        return 0;
    }
    std::ofstream file(out);
    file << outcome.str();
    if (!file.flush())
    {
        std::cerr << "olaf-multihop: cannot write --out=" << out << "\n";
        return 1;
    }
    return 0;
}
