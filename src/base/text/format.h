// Text by printf's patterns, for numbers whose width and digits a table fixes.
#pragma once

#include <string>

namespace sparkle {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...);

}  // namespace sparkle
