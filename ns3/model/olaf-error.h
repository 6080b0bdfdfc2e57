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

#endif /* OLAF_ERROR_H */
