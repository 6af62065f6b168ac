// The other engines that `bench --against` knows: each has one adaptor here, which loads the engine's library when it is asked
// for. Where the libraries lie is found by cmake/peers.cmake; "NAME=FILE" takes another one.
#pragma once

#include <vector>

#include "measure/head_to_head.h"

namespace sparkle::cli {

using Peers = std::vector<std::unique_ptr<Peer>>;

// "onednn,onnxruntime,openblas" or some of them, each perhaps with "=FILE". Errors: bad_usage for an unknown name;
// device_unusable for one that is not here, too old or broken, with what to do.
Result<Peers> open_peers(const std::string& list, int threads);

// One engine may take part in several ways: each becomes a Peer.
Result<Peers> open_onednn(const std::string& file, int threads);
Result<Peers> open_onnxruntime(const std::string& file, int threads);
Result<Peers> open_openblas(const std::string& file, int threads);

// The library of ONNX Runtime that "onnxruntime" or "onnxruntime=FILE" names: the one peer that runs whole models. Errors:
// bad_usage for other peers, device_unusable where none was found.
Result<std::string> onnxruntime_file(const std::string& list);

// This process on the first `threads` of the CPUs that it may use: whatever threads it and its libraries start stay there.
void pin_process(int threads);

}  // namespace sparkle::cli
