// Markers: files that say what a process is doing, so that the next one learns with what it ended.
#pragma once

#include <string>
#include <vector>

namespace sparkle {

class Marker {
 public:
  // A file PREFIX_NUMBER_PROCESS in the folder with this line in it, until the destructor removes it. The process holds a lock
  // on it, which is gone with the process however that ends; processes' numbers come again and say nothing. There is no file
  // where the folder is empty or cannot be written.
  Marker(const std::string& folder, const std::string& prefix, const std::string& line);
  ~Marker();
  Marker(const Marker&) = delete;
  Marker& operator=(const Marker&) = delete;

 private:
  std::string path_;
  int file_ = -1;
};

// The lines of markers whose processes are gone. Each is handed out once: its file is removed.
std::vector<std::string> orphaned_markers(const std::string& folder, const std::string& prefix);

}  // namespace sparkle
