#include "peers/peers.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace sparkle::cli {
namespace {

struct Known {
  const char* name;
  const char* file;  // found when this program was configured; empty: not found
  const char* why;   // why not
  Result<Peers> (*open)(const std::string& file, int threads);
};

Result<Peers> no_adaptor(const std::string&, int) {
  return Error{Reason::device_unusable, "This program was built without oneDNN's headers: " SPARKLE_ONEDNN_WHY
                                        " Run scripts/setup bench, then configure and build again."};
}

constexpr Known kKnown[] = {
#if SPARKLE_HAS_ONEDNN
    {"onednn", SPARKLE_ONEDNN_FILE, SPARKLE_ONEDNN_WHY, open_onednn},
#else
    {"onednn", "", SPARKLE_ONEDNN_WHY, no_adaptor},
#endif
    {"onnxruntime", SPARKLE_ONNXRUNTIME_FILE, "no ONNX Runtime was found.", open_onnxruntime},
    {"openblas", SPARKLE_OPENBLAS_FILE, "no OpenBLAS was found.", open_openblas},
};

Error not_here(const Known& known) {
  return {Reason::device_unusable, "There is no " + std::string(known.name) + " to measure against: " + known.why +
                                       " Name its library, as in --against " + known.name +
                                       "=LIBRARY.so, or run scripts/setup bench, then configure and build again."};
}

}  // namespace

Result<std::string> onnxruntime_file(const std::string& list) {
  const std::string name = "onnxruntime";
  if (list.starts_with(name + "=")) return list.substr(name.size() + 1);
  if (list != name)
    return Error{Reason::bad_usage,
                 "'" + list + "' runs no whole models; write --against onnxruntime, or onnxruntime=LIBRARY."};
  const Known& known = *std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return k.name == name; });
  if (!*known.file) return not_here(known);
  return std::string(known.file);
}

Result<Peers> open_peers(const std::string& list, int threads) {
  Peers peers;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) {
    const size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    const Known* known = nullptr;
    std::string names;
    for (const Known& k : kKnown) {
      if (k.name == name) known = &k;
      names += (names.empty() ? "" : ", ") + std::string(k.name);
    }
    if (!known) return Error{Reason::bad_usage, "There is no peer '" + name + "' to measure against; there are " + names + "."};
    const std::string file = equals == std::string::npos ? known->file : item.substr(equals + 1);
    if (file.empty() && known->open != no_adaptor) return not_here(*known);
    SPARKLE_TRY(opened, known->open(file, threads));
    for (auto& peer : opened) {
      for (const auto& other : peers)
        if (other->name() == peer->name()) return Error{Reason::bad_usage, "The peer '" + name + "' is named twice."};
      peers.push_back(std::move(peer));
    }
  }
  if (peers.empty()) return Error{Reason::bad_usage, "--against needs the name of a peer, as in --against onednn,openblas."};
  return peers;
}

void pin_process(int threads) {
  cpu_set_t allowed, chosen;
  CPU_ZERO(&chosen);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0, taken = 0; cpu < CPU_SETSIZE && taken < threads; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &chosen), ++taken;
  sched_setaffinity(0, sizeof chosen, &chosen);
}

}  // namespace sparkle::cli
