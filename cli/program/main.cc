// The program `sparkle`, where it holds the whole command.
#include "command.h"

int main(int argc, char** argv) { return sparkle::cli::command_line(argc, argv); }
