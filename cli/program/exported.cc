// The whole command as a function of libsparkle.so: in releases the program is a stub over it (stub.cc), so that the library is
// not carried twice.
#include "command.h"

extern "C" __attribute__((visibility("default"))) int sparkle_command(int argc, char** argv) {
  return sparkle::cli::command_line(argc, argv);
}
