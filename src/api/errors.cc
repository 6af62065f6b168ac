// sparkle_last_error, sparkle_status_name, texts, versions.
#include <cstdlib>
#include <cstring>

#include "api/handles.h"
#include "base/printable.h"

namespace sparkle::api {
namespace {

thread_local std::string last_sentence;

sparkle_status status_of(Reason reason) {
  switch (reason) {
    case Reason::none: return SPARKLE_OK;
    case Reason::bad_usage: return SPARKLE_BAD_USAGE;
    case Reason::file_unreadable: return SPARKLE_FILE_UNREADABLE;
    case Reason::file_unwritable: return SPARKLE_FILE_UNWRITABLE;
    case Reason::bad_format: return SPARKLE_BAD_FORMAT;
    case Reason::bad_model: return SPARKLE_BAD_MODEL;
    case Reason::bad_shape:
    case Reason::bad_input: return SPARKLE_BAD_INPUT;
    case Reason::over_memory_budget: return SPARKLE_OVER_MEMORY_BUDGET;
    case Reason::size_overflow:
    case Reason::out_of_memory: return SPARKLE_OUT_OF_MEMORY;
    case Reason::device_unusable: return SPARKLE_DEVICE_UNUSABLE;
    case Reason::device_lost: return SPARKLE_DEVICE_LOST;
    case Reason::internal: return SPARKLE_INTERNAL;
    default: return SPARKLE_NOT_SERVED;  // an operator, type or form; or a candidate's reason that reached the caller
  }
}

}  // namespace

sparkle_status fail(const Error& error) {
  try {
    last_sentence = printable_sentence(error.message);
  } catch (const std::bad_alloc&) {
    last_sentence.clear();
  }
  return status_of(error.reason);
}

char* new_text(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace sparkle::api

const char* sparkle_version(void) { return SPARKLE_VERSION; }
const char* sparkle_last_error(void) { return sparkle::api::last_sentence.c_str(); }
void sparkle_string_free(char* text) { std::free(text); }

const char* sparkle_status_name(sparkle_status status) {
  switch (status) {
    case SPARKLE_OK: return "ok";
    case SPARKLE_BAD_USAGE: return "bad_usage";
    case SPARKLE_FILE_UNREADABLE: return "file_unreadable";
    case SPARKLE_FILE_UNWRITABLE: return "file_unwritable";
    case SPARKLE_BAD_FORMAT: return "bad_format";
    case SPARKLE_BAD_MODEL: return "bad_model";
    case SPARKLE_BAD_INPUT: return "bad_input";
    case SPARKLE_NOT_SERVED: return "not_served";
    case SPARKLE_OVER_MEMORY_BUDGET: return "over_memory_budget";
    case SPARKLE_OUT_OF_MEMORY: return "out_of_memory";
    case SPARKLE_DEVICE_UNUSABLE: return "device_unusable";
    case SPARKLE_DEVICE_LOST: return "device_lost";
    case SPARKLE_TIMEOUT: return "timeout";
    case SPARKLE_INTERNAL: return "internal";
  }
  return "unknown";
}
