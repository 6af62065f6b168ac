/* run_model MODEL: runs a model once on zeros, open sizes taken as 1, and prints the largest element of each output. */
#include <sparkle/sparkle.h>
#include <stdio.h>
#include <stdlib.h>

static void check(sparkle_status status) {
  if (status == SPARKLE_OK) return;
  fprintf(stderr, "%s: %s\n", sparkle_status_name(status), sparkle_last_error());
  exit(2);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: run_model MODEL\n");
    return 2;
  }
  sparkle_device* device = NULL;
  sparkle_session* session = NULL;
  check(sparkle_device_open(NULL, &device));
  check(sparkle_session_open(device, argv[1], NULL, &session));

  const size_t inputs = sparkle_session_input_count(session), outputs = sparkle_session_output_count(session);
  sparkle_tensor* input = calloc(inputs + 1, sizeof *input);
  sparkle_value** output = calloc(outputs + 1, sizeof *output);
  for (size_t i = 0; i < inputs; ++i) {
    sparkle_tensor_info info;
    check(sparkle_session_input(session, i, &info));
    size_t bytes = sparkle_type_size(info.type);
    input[i].type = info.type;
    input[i].rank = info.rank < 0 ? 0 : info.rank;
    for (int32_t a = 0; a < input[i].rank; ++a) {
      input[i].shape[a] = info.shape[a] < 0 ? 1 : info.shape[a];
      bytes *= (size_t)input[i].shape[a];
    }
    input[i].data = calloc(bytes + 1, 1);
  }

  check(sparkle_session_run(session, input, inputs, output, outputs));
  for (size_t i = 0; i < outputs; ++i) {
    const sparkle_tensor t = sparkle_value_tensor(output[i]);
    size_t count = 1;
    for (int32_t a = 0; a < t.rank; ++a) count *= (size_t)t.shape[a];
    if (t.type == SPARKLE_F32 && count > 0) {
      const float* values = t.data;
      size_t best = 0;
      for (size_t k = 1; k < count; ++k)
        if (values[k] > values[best]) best = k;
      printf("output %zu: element %zu is the largest of %zu: %g\n", i, best, count, (double)values[best]);
    }
    sparkle_value_release(output[i]);
  }
  for (size_t i = 0; i < inputs; ++i) free(input[i].data);
  free(input);
  free(output);
  sparkle_session_release(session);
  sparkle_device_release(device);
  return 0;
}
