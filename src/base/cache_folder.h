// Where this user's caches lie: measured rates, tuning stores.
#pragma once

#include <string>

namespace sparkle {

// $XDG_CACHE_HOME/sparkle or ~/.cache/sparkle; empty where neither variable names a folder. It need not exist.
std::string cache_folder();

}  // namespace sparkle
