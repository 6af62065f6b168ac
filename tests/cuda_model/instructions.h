// Tests of single instructions: a lambda runs as a kernel in the model.
#pragma once

#include <functional>
#include <string>

#include "cuda_model/model.h"

namespace cuda_model {

// `body` in each thread; the model's fault, or empty.
inline std::string run_body(const Launch& how, const std::function<void()>& body) {
  const Kernel kernel{"body", sizeof(&body), alignof(void*), 1024,
                      [](const void* record) { (**static_cast<const std::function<void()>* const*>(record))(); }};
  const auto* address = &body;
  return launch(kernel, how, &address);
}

}  // namespace cuda_model
