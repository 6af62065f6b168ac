// A shared library that is opened when it is first needed: beside the code that asks, or where the system looks.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sparkle {

// The address of `entry` in the library `name`, which stays open and shows its names to nobody else. It is looked for in
// `folders`, relative to the folder of the file that this code lies in ("": that folder itself), then by the system.
// file_unreadable: "NAME does not load (WHY)", without a full stop; WHY is of a file that is there where there is one.
Result<void*> entry_of_library(const std::string& name, const std::vector<std::string>& folders, const char* entry);

}  // namespace sparkle
