#include "run_command/stream/gather.h"

#include <algorithm>
#include <cstring>

#include "base/printable.h"
#include "base/system/out_of_memory.h"

namespace sparkle::cli {

Result<int64_t> batch_of(const SessionInput& input, int64_t wanted) {
  const int64_t fixed = input.shape.size() > 0 ? input.shape[0] : 1;
  if (wanted == 1 || fixed == wanted || (input.shape.size() > 0 && fixed <= 0)) return wanted;
  return Error{Reason::bad_usage, "--batch " + std::to_string(wanted) + " does not fit the model, whose input '" + input.name +
                                      "' has " + std::to_string(fixed) + " along its first axis."};
}

Status check_row(const HostTensor& item, const std::string& name, int64_t rows) {
  if (rows == 1 || (item.shape.size() > 0 && item.shape[0] == 1)) return ok();
  return Error{Reason::bad_input,
               "'" + printable(name) + "' is " + item.shape.to_string() +
                   ", and an item of a batch is one row, 1x...; give it a first axis of 1, or leave out --batch."};
}

Result<HostTensor> put_together(const std::vector<HostTensor>& items, int64_t rows) {
  if (rows == 1) return items.front();
  HostTensor first = items.front();
  Dims shape = first.shape;
  shape[0] = rows;
  SPARKLE_TRY(batch, allocate_tensor(first.dtype, shape, "The batch"));
  const int64_t bytes = first.size_bytes();
  for (int64_t r = 0; r < rows; ++r) {
    const HostTensor& item = items[static_cast<size_t>(std::min<int64_t>(r, static_cast<int64_t>(items.size()) - 1))];
    std::memcpy(batch.bytes.get() + r * bytes, item.bytes.get(), static_cast<size_t>(bytes));
  }
  return batch;
}

Result<HostTensor> row_of(const HostTensor& output, const std::string& name, int64_t row, int64_t rows) {
  if (rows == 1) return output;
  if (output.shape.size() == 0 || output.shape[0] != rows)
    return Error{Reason::bad_input, "Output '" + name + "' is " + output.shape.to_string() + " for a batch of " +
                                        std::to_string(rows) + ", so no row of it is one item's; leave out --batch."};
  HostTensor part = output;
  part.shape[0] = 1;
  part.bytes = std::shared_ptr<std::byte[]>(output.bytes, output.bytes.get() + row * part.size_bytes());
  return part;
}

}  // namespace sparkle::cli
