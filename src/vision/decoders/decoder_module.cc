// The door of libsparkle_pictures.so, which libsparkle.so opens (src/api/load_decoders.cc).
#include "vision/decoders/decoders.h"

// Both are of one build, and found by one name.
extern "C" __attribute__((visibility("default"))) const sparkle::Decoders* sparkle_picture_decoders() {
  return *sparkle::decoders();
}
