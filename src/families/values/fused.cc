#include "families/values/fused.h"

namespace sparkle {

void add_fused(Blocking& blocking, const Epilogue& e) {
  std::vector<std::string>& fused = blocking.fused;
  if (e.scale) fused.emplace_back("scale");
  if (e.bias) fused.emplace_back("bias");
  if (e.residuals_before > 0) fused.push_back(counted(e.residuals_before, "residual"));
  if (e.activation != Activation::none) fused.emplace_back(name_of(e.activation));
  if (e.residuals_after > 0) fused.push_back(counted(e.residuals_after, "residual") + " behind the activation");
  if (e.has_post_op()) fused.push_back(expression(e.post_op));
}

void add_fused(Blocking& blocking, const Window& w, bool gathered) {
  if (w.pad_begin != Triple{0, 0, 0} || w.pad_end != Triple{0, 0, 0}) blocking.fused.emplace_back("padding");
  if (gathered && w.taps() > 1) blocking.fused.emplace_back("im2col");
}

Blocking plain_blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  Blocking blocking = streaming_blocking(stage, schedule, device);
  if (const Epilogue* epilogue = epilogue_of(stage.params)) add_fused(blocking, *epilogue);
  if (const Window* window = window_of(stage.params)) add_fused(blocking, *window, false);
  return blocking;
}

}  // namespace sparkle
