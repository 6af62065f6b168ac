// Expressions of sparkle.h.
#include "api/handles.h"

using namespace sparkle;
using sparkle::api::guarded;

sparkle_status sparkle_eval(sparkle_device* device, const char* expression, const char* const* names,
                            const sparkle_tensor* tensors, size_t count, sparkle_value** result) {
  return guarded([&]() -> Status {
    if (!device || !expression || !result || (count > 0 && !names))
      return Error{Reason::bad_usage, "sparkle_eval needs a device, an expression, a name for each tensor and a place."};
    SPARKLE_TRY(borrowed, api::borrow(tensors, count, "tensor"));
    std::vector<ExpressionArgument> arguments;
    for (size_t i = 0; i < count; ++i) {
      if (!names[i]) return Error{Reason::bad_usage, "The name of tensor " + std::to_string(i) + " is NULL."};
      if (!borrowed[i].bytes && borrowed[i].elements() > 0)
        return Error{Reason::bad_usage, "The data of tensor '" + std::string(names[i]) + "' is NULL."};
      arguments.push_back({names[i], std::move(borrowed[i])});
    }
    SPARKLE_TRY(value, device->expressions.run(expression, arguments));
    *result = new sparkle_value{std::move(value)};
    return ok();
  });
}
