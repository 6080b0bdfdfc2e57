/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_TEST_H
#define OLAF_TEST_H

#include "ns3/abort.h"

#include <string>

namespace ns3
{

/**
 * \param json an outcome or a report
 * \param key a key
 * \param nth which of those of that name, from 0
 * \return its number
 */
inline double
OlafNumber(const std::string& json, const std::string& key, int nth = 0)
{
    size_t at = 0;
    for (int i = 0; i <= nth; i++)
    {
        at = json.find("\"" + key + "\":", at);
        NS_ABORT_MSG_IF(at == std::string::npos, "no " << key << " in " << json);
        at += key.size() + 3;
    }
    return std::stod(json.substr(at));
}

} // namespace ns3

#endif /* OLAF_TEST_H */
