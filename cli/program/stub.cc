// The program `sparkle` of releases: the command lies in libsparkle.so (exported.cc).
extern "C" int sparkle_command(int argc, char** argv);

int main(int argc, char** argv) { return sparkle_command(argc, argv); }
