// TransferSet: where the tensors of one item lie on their way through a device. Sets are used again, so that nothing is
// allocated once sizes have been seen.
#pragma once

#include "backends/backend.h"
#include "plan/plan.h"

namespace sparkle {

class TransferSet {
 public:
  // Makes room for the plan's inputs and outputs on the backend: the caller's own memory where the device works there, else
  // memory of the device with staging beside what the host cannot reach. Errors: out_of_memory, what the backend says.
  Status fit(std::shared_ptr<Backend> backend, std::shared_ptr<const Plan> plan, const std::vector<HostTensor>& inputs);
  const std::vector<std::shared_ptr<Buffer>>& inputs() const { return inputs_; }
  const std::vector<std::shared_ptr<Buffer>>& outputs() const { return outputs_; }
  const std::shared_ptr<Backend>& backend() const { return backend_; }

  // Hands the values over; what reads them comes after the token.
  Result<Token> upload(const std::vector<HostTensor>& inputs);
  // Brings the outputs to where the host can read them, by a copy of the device's where there is one to make.
  bool has_download() const;
  Result<Token> download(Token after);
  // The outputs, once that is complete.
  Result<std::vector<HostTensor>> take();

 private:
  struct Place {
    std::shared_ptr<Buffer> device, staging;  // no staging: the host reaches the memory itself
    bool shared = false;                      // the caller's own memory
  };
  Status place(Place& place, int64_t bytes);
  Result<Token> copy(const std::vector<CopyRegion>& regions, Token after, const std::vector<Place>& places);

  std::shared_ptr<Backend> backend_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Place> in_, out_;
  std::vector<std::shared_ptr<Buffer>> inputs_, outputs_;
  std::vector<HostTensor> results_;
};

}  // namespace sparkle
