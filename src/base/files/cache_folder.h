// Where this user's caches lie - measured rates, tuning stores, pipelines, verdicts on kernels - and how files there are
// written: a process that is stopped at any moment leaves the old file or the new one.
#pragma once

#include <string>
#include <string_view>

namespace sparkle {

// $XDG_CACHE_HOME/sparkle or ~/.cache/sparkle; empty where neither variable names a folder. It need not exist.
std::string cache_folder();

// Whether there is no such process of another number than ours, or only its status is left.
bool process_ended(long process);

// Replaces the file by one of these bytes as base/files/new_file.h does; false where it could not be written.
bool replace_file(const std::string& path, std::string_view bytes);

// One more line at the end of a file of lines, under a lock on it, so that processes that do the same do not cut each other's.
// A last line without its end, of a process or a disk that gave out, is taken off first.
void append_line(const std::string& path, const std::string& line);

}  // namespace sparkle
