#include "run/pipeline/transfer_set.h"

#include <algorithm>
#include <cstring>

#include "base/system/out_of_memory.h"
#include "run/host_tensors.h"

namespace sparkle {
namespace {

int64_t room_for(const HostTensor& tensor) { return std::max<int64_t>(tensor.size_bytes(), 1); }

}  // namespace

Status TransferSet::place(Place& place, int64_t bytes) {
  if (place.device && !place.shared && place.device->bytes() >= bytes) return ok();
  place = {};
  SPARKLE_TRY(device, backend_->allocate(bytes, MemoryKind::device));
  if (!device->host()) {
    SPARKLE_TRY(staging, backend_->allocate(bytes, MemoryKind::staging));
    place.staging = std::move(staging);
  }
  place.device = std::move(device);
  return ok();
}

Status TransferSet::fit(std::shared_ptr<Backend> backend, std::shared_ptr<const Plan> plan,
                        const std::vector<HostTensor>& inputs) {
  if (backend != backend_) in_.clear(), out_.clear();
  backend_ = std::move(backend), plan_ = std::move(plan);
  in_.resize(inputs.size()), out_.resize(plan_->outputs.size());
  inputs_.clear(), outputs_.clear(), results_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    SPARKLE_TRY(own, backend_->import(inputs[i].bytes.get(), room_for(inputs[i])));
    if (own) in_[i] = {std::move(own), nullptr, true};
    else SPARKLE_CHECK(place(in_[i], room_for(inputs[i])));
    inputs_.push_back(in_[i].device);
  }
  for (size_t i = 0; i < out_.size(); ++i) {
    const PlanTensor& t = plan_->tensors[static_cast<size_t>(plan_->outputs[i])];
    SPARKLE_TRY(result, allocate_tensor(t.desc.dtype, t.desc.shape, "Output '" + t.name + "'"));
    SPARKLE_TRY(own, backend_->import(result.bytes.get(), room_for(result)));
    if (own) out_[i] = {std::move(own), nullptr, true};
    else SPARKLE_CHECK(place(out_[i], room_for(result)));
    outputs_.push_back(out_[i].device);
    results_.push_back(std::move(result));
  }
  return ok();
}

// The buffers live until the copy is complete, whatever becomes of the set: it may go to another device meanwhile.
Result<Token> TransferSet::copy(const std::vector<CopyRegion>& regions, Token after, const std::vector<Place>& places) {
  SPARKLE_TRY(token, backend_->copy(regions, after));
  std::vector<std::shared_ptr<void>> used;
  for (const Place& place : places) {
    used.push_back(place.device);
    if (place.staging) used.push_back(place.staging);
  }
  backend_->keep_until(token, std::move(used));
  return token;
}

Result<Token> TransferSet::upload(const std::vector<HostTensor>& inputs) {
  std::vector<CopyRegion> regions;
  for (size_t i = 0; i < in_.size(); ++i) {
    if (in_[i].shared || inputs[i].size_bytes() == 0) continue;
    Buffer& to = in_[i].staging ? *in_[i].staging : *in_[i].device;
    backend_->count_host_transfer();
    std::memcpy(to.host(), inputs[i].bytes.get(), static_cast<size_t>(inputs[i].size_bytes()));
    if (in_[i].staging) regions.push_back({in_[i].staging.get(), 0, in_[i].device.get(), 0, inputs[i].size_bytes()});
  }
  return regions.empty() ? Result<Token>(Token{}) : copy(regions, {}, in_);
}

bool TransferSet::has_download() const {
  for (size_t i = 0; i < results_.size(); ++i)
    if (out_[i].staging && results_[i].size_bytes() > 0) return true;
  return false;
}

Result<Token> TransferSet::download(Token after) {
  std::vector<CopyRegion> regions;
  for (size_t i = 0; i < out_.size(); ++i)
    if (out_[i].staging && results_[i].size_bytes() > 0)
      regions.push_back({out_[i].device.get(), 0, out_[i].staging.get(), 0, results_[i].size_bytes()});
  return regions.empty() ? Result<Token>(after) : copy(regions, after, out_);
}

Result<std::vector<HostTensor>> TransferSet::take() {
  for (size_t i = 0; i < out_.size(); ++i) {
    if (out_[i].shared || results_[i].size_bytes() == 0) continue;
    Buffer& from = out_[i].staging ? *out_[i].staging : *out_[i].device;
    backend_->count_host_transfer();
    std::memcpy(results_[i].bytes.get(), from.host(), static_cast<size_t>(results_[i].size_bytes()));
  }
  for (const int i : plan_->open) end_after_found_rows(results_[static_cast<size_t>(i)]);
  // What is the caller's goes back to him.
  for (auto* places : {&in_, &out_})
    for (Place& place : *places)
      if (place.shared) place = {};
  return std::move(results_);
}

}  // namespace sparkle
