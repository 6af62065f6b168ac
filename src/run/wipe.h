// Wiping: what is found in wiped memory later was written later, whatever lay there before.
#pragma once

#include "backends/backend.h"

namespace sparkle {

// What every byte may be set to: every bit, which is NaN in all float types; or numbers in all types. An element that stays as
// either has left it was not written, whatever it ought to be.
inline constexpr std::byte kWipedToNan{0xff}, kWipedToNumbers{0x5a};

// Sets every byte of a buffer of any backend. Done on return.
Status wipe(Backend& backend, Buffer& buffer, std::byte to = kWipedToNan);

// The elements of a tensor that lies in a buffer from `offset` on, in bytes, and nothing between them. Done on return.
Status wipe_elements(Backend& backend, Buffer& buffer, int64_t offset, const TensorDesc& desc, std::byte to);

}  // namespace sparkle
