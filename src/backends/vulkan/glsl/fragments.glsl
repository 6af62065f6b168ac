// Fragments: 16 x 16 parts of matrices that a subgroup holds together and multiplies by its matrix unit
// (VK_KHR_cooperative_matrix). Compilers of GLSL that know no KHR extension take types and instructions by number; the element
// types 0x7f16 and 0x7f32 are put right when the shader is loaded (fragment_types.h). With EMULATED the same functions work on
// shared memory: a lane keeps 256 / kSubgroup sums, and both operands are read where they lie.
#ifdef EMULATED
const int kHeld = 256 / kSubgroup;  // sums of a fragment that a lane holds
float held[kPartM * kPartN * kHeld];
#define LeftFragment ivec2
#define RightFragment ivec2
#define LOAD_LEFT(fragment, at, pitch) fragment = ivec2(at, pitch)
#define LOAD_RIGHT(fragment, at, pitch) fragment = ivec2(at, pitch)
int fragment_lane() { return int(gl_LocalInvocationID.x) % kSubgroup; }
int fragment_subgroup() { return int(gl_LocalInvocationID.x) / kSubgroup; }
void multiply(int fragment, ivec2 a, ivec2 b) {
  for (int i = 0; i < kHeld; ++i) {
    const int row = (fragment_lane() + i * kSubgroup) / 16, column = (fragment_lane() + i * kSubgroup) % 16;
    for (int k = 0; k < 16; ++k)
      held[fragment * kHeld + i] += float(left[a.x + row * a.y + k]) * float(right[b.x + k * b.y + column]);
  }
}
void store(int at, int pitch, int fragment) {
  for (int i = 0; i < kHeld; ++i) {
    const int e = fragment_lane() + i * kSubgroup;
    staging[at + e / 16 * pitch + e % 16] = held[fragment * kHeld + i];
  }
}
#define DECLARE_SUMS \
  for (int i = 0; i < kPartM * kPartN * kHeld; ++i) held[i] = 0.0
#define MULTIPLY(fragment, a, b) multiply(fragment, a, b)
#define STORE_SUMS(at, pitch, fragment) store(at, pitch, fragment)
#else
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_basic : require
const uint kScope = 3u, kSide = 16u, kUseLeft = 0u, kUseRight = 1u, kUseSums = 2u;
const int kRowMajor = 0;
#define FRAGMENT(type, use) spirv_type(extensions = ["SPV_KHR_cooperative_matrix", "SPV_KHR_vulkan_memory_model"], capabilities = [6022, 5345], id = 4456, type, kScope, kSide, kSide, use)
#define LeftFragment FRAGMENT(0x7f16, kUseLeft)
#define RightFragment FRAGMENT(0x7f16, kUseRight)
#define Sums FRAGMENT(0x7f32, kUseSums)
spirv_instruction(id = 4457) LeftFragment load_left(spirv_by_reference float16_t from, int major, int pitch);
spirv_instruction(id = 4457) RightFragment load_right(spirv_by_reference float16_t from, int major, int pitch);
spirv_instruction(id = 4458) void store_sums(spirv_by_reference float to, Sums sums, int major, int pitch);
spirv_instruction(id = 4459) Sums multiplied(LeftFragment a, RightFragment b, Sums sums);
spirv_instruction(id = 80) Sums splat(float value);
#define LOAD_LEFT(fragment, at, pitch) fragment = load_left(left[at], kRowMajor, pitch)
#define LOAD_RIGHT(fragment, at, pitch) fragment = load_right(right[at], kRowMajor, pitch)
#define STORE_SUMS(at, pitch, fragment) store_sums(staging[at], sums[fragment], kRowMajor, pitch)
#define DECLARE_SUMS \
  Sums sums[kPartM * kPartN]; \
  [[unroll]] for (int i = 0; i < kPartM * kPartN; ++i) sums[i] = splat(0.0)
#define MULTIPLY(fragment, a, b) sums[fragment] = multiplied(a, b, sums[fragment])
int fragment_lane() { return int(gl_SubgroupInvocationID); }
int fragment_subgroup() { return int(gl_SubgroupID); }
#endif
