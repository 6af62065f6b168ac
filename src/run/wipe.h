// Wiping: what is found in wiped memory later was written later, whatever lay there before.
#pragma once

#include "backends/backend.h"

namespace sparkle {

// Sets every bit of a buffer of any backend, which is NaN in all float types. Done on return.
Status wipe(Backend& backend, Buffer& buffer);

}  // namespace sparkle
