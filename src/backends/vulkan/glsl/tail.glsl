// A program behind each sum: none in shaders that are compiled when Sparkle is built. At run time what tail.cc prints takes the
// place of this file: operands to push, words behind the stage's record, a function of them, and its call.
#define TAIL_OPERANDS
#define TAIL_RECORD
#define TAIL_FUNCTION
#define TAILED(y, pixel, channel, instance) y
