/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * This program is free software; you can redistribute it and/or modify it under the terms of the
 * GNU General Public License version 2 as published by the Free Software Foundation.
 */

#ifndef OLAF_ERROR_H
#define OLAF_ERROR_H

#include "olaf.h"

#include "ns3/fatal-error.h"

#include <string>
#include <vector>

/**
 * Calls libolaf and stops the simulation where it refuses: the callers here pass only what the
 * header allows, so a refusal is a mistake in this module or in a scenario's parameters.
 */
#define OLAF_MUST(call)                                                                            \
    do                                                                                             \
    {                                                                                              \
        const olaf_result olafResult = (call);                                                     \
        if (olafResult != OLAF_RESULT_OK)                                                          \
        {                                                                                          \
            NS_FATAL_ERROR(#call << ": " << olaf_result_text(olafResult));                         \
        }                                                                                          \
    } while (false)

namespace ns3
{

/**
 * Takes a text from libolaf.
 *
 * \param call a call that writes a text, and how long it is, into a buffer of some capacity
 * \return the text
 */
template <typename Call>
std::string
OlafText(Call call)
{
    // The first call finds no room and says how much it takes.
    size_t length = 0;
    const olaf_result result = call(nullptr, 0, &length);
    if (result != OLAF_RESULT_TOO_SHORT)
    {
        OLAF_MUST(result);
    }
    std::vector<char> text(length + 1);
    OLAF_MUST(call(text.data(), text.size(), &length));
    return text.data();
}

} // namespace ns3

#endif /* OLAF_ERROR_H */
