/* As much of libnvtx3interop (and of libnvToolsExt before it) as a run calls: each call is a line of the file that FAKE_NVTX_LOG names. */
#include <stdio.h>
#include <stdlib.h>

static FILE* log_file(void) {
  static FILE* file;
  if (!file) file = fopen(getenv("FAKE_NVTX_LOG"), "w");
  return file;
}

int nvtxRangePushA(const char* name) {
  fprintf(log_file(), "%s\n", name);
  return 0;
}
int nvtxRangePop(void) {
  fputs(".\n", log_file());
  return 0;
}
