// Notes that are neither results nor errors, for whoever embeds Sparkle. Silent until a sink is set.
#pragma once

#include <string>

namespace sparkle {

enum class LogLevel { info, warning };
// Called from any thread, one line without a line end.
using LogSink = void (*)(void* user, LogLevel level, const char* message);

void set_log(LogSink sink, void* user);
bool logging();
void log(LogLevel level, const std::string& message);

}  // namespace sparkle
