// SPDX-License-Identifier: MIT
// What the sources of machine, op, order and trace include of the emulator itself, compiled once.
#pragma once

#include "tools/emulator/base/precompiled.h"
#include "tools/emulator/base/settings.h"
#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/machine/report.h"
