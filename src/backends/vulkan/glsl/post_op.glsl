// A program behind each sum: none in shaders that are compiled when Sparkle is built. At run time what post_op.cc prints takes the
// place of this file: operands to push, words behind the stage's record, a function of them, and its call.
#define POST_OP_OPERANDS
#define POST_OP_RECORD
#define POST_OP_FUNCTION
#define WITH_POST_OP(y, pixel, channel, instance) y
