// Fragments: parts of matrices, kFragmentM x kFragmentN sums of kFragmentK products each, that a subgroup holds together and
// multiplies by its matrix unit (VK_KHR_cooperative_matrix); in a shader built with WORKGROUP all of a workgroup does
// (VK_NV_cooperative_matrix2), and counts as one subgroup here. Compilers of GLSL that know no such extension take types and
// instructions by number; the element types 0x7f16 and 0x7f32 and the sizes 0x7fa0 to 0x7fa2 are put right when the shader is
// loaded (fragment_types.h). With EMULATED the same functions work on shared memory: a lane keeps its share of the sums, and
// both operands are read where they lie.
#ifdef EMULATED
const int kHeld = kFragmentM * kFragmentN / kSubgroup;  // sums of a fragment that a lane holds
float held[kPartM * kPartN * kHeld];
#define LeftFragment ivec2
#define RightFragment ivec2
#define LOAD_LEFT(fragment, at, pitch) fragment = ivec2(at, pitch)
#define LOAD_RIGHT(fragment, at, pitch) fragment = ivec2(at, pitch)
int fragment_lane() { return int(gl_LocalInvocationID.x) % kSubgroup; }
int fragment_subgroup() { return int(gl_LocalInvocationID.x) / kSubgroup; }
void multiply(int fragment, ivec2 a, ivec2 b) {
  for (int i = 0; i < kHeld; ++i) {
    const int e = fragment_lane() + i * kSubgroup, row = e / kFragmentN, column = e % kFragmentN;
    for (int k = 0; k < kFragmentK; ++k)
      held[fragment * kHeld + i] += float(left[a.x + row * a.y + k]) * float(right[b.x + k * b.y + column]);
  }
}
void store(int at, int pitch, int fragment) {
  for (int i = 0; i < kHeld; ++i) {
    const int e = fragment_lane() + i * kSubgroup;
    staging[at + e / kFragmentN * pitch + e % kFragmentN] = held[fragment * kHeld + i];
  }
}
#define DECLARE_SUMS \
  for (int i = 0; i < kPartM * kPartN * kHeld; ++i) held[i] = 0.0
#define MULTIPLY(fragment, a, b) multiply(fragment, a, b)
#define STORE_SUMS(at, pitch, fragment) store(at, pitch, fragment)
#else
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef WORKGROUP
const uint kScope = 2u;
#define FRAGMENT_EXTENSIONS ["SPV_KHR_cooperative_matrix", "SPV_KHR_vulkan_memory_model", "SPV_NV_cooperative_matrix2"]
#else
const uint kScope = 3u;
#define FRAGMENT_EXTENSIONS ["SPV_KHR_cooperative_matrix", "SPV_KHR_vulkan_memory_model"]
#endif
const uint kSizeM = 0x7fa0u, kSizeN = 0x7fa1u, kSizeK = 0x7fa2u;
const uint kUseLeft = 0u, kUseRight = 1u, kUseSums = 2u;
const int kRowMajor = 0;
#define FRAGMENT(type, m, n, use) spirv_type(extensions = FRAGMENT_EXTENSIONS, capabilities = [6022, 5345], id = 4456, type, kScope, m, n, use)
#define LeftFragment FRAGMENT(0x7f16, kSizeM, kSizeK, kUseLeft)
#define RightFragment FRAGMENT(0x7f16, kSizeK, kSizeN, kUseRight)
#define Sums FRAGMENT(0x7f32, kSizeM, kSizeN, kUseSums)
// What others have stored before a barrier is only seen, in Vulkan's memory model, by loads that are not private and make it
// visible to themselves; with what is stored it is the same. Other accesses to shared memory are such from GLSL on.
const int kVisible = 0x30, kAvailable = 0x28, kWorkgroupScope = 2;
spirv_instruction(id = 4457) LeftFragment load_left(spirv_by_reference float16_t from, int major, int pitch, spirv_literal int access, int scope);
spirv_instruction(id = 4457) RightFragment load_right(spirv_by_reference float16_t from, int major, int pitch, spirv_literal int access, int scope);
spirv_instruction(id = 4458) void store_sums(spirv_by_reference float to, Sums sums, int major, int pitch, spirv_literal int access, int scope);
spirv_instruction(id = 4459) Sums multiplied(LeftFragment a, RightFragment b, Sums sums);
spirv_instruction(id = 80) Sums splat(float value);
#define LOAD_LEFT(fragment, at, pitch) fragment = load_left(left[at], kRowMajor, pitch, kVisible, kWorkgroupScope)
#define LOAD_RIGHT(fragment, at, pitch) fragment = load_right(right[at], kRowMajor, pitch, kVisible, kWorkgroupScope)
#define STORE_SUMS(at, pitch, fragment) store_sums(staging[at], sums[fragment], kRowMajor, pitch, kAvailable, kWorkgroupScope)
#define DECLARE_SUMS \
  Sums sums[kPartM * kPartN]; \
  [[unroll]] for (int i = 0; i < kPartM * kPartN; ++i) sums[i] = splat(0.0)
#define MULTIPLY(fragment, a, b) sums[fragment] = multiplied(a, b, sums[fragment])
#ifdef WORKGROUP
int fragment_lane() { return int(gl_LocalInvocationID.x); }
int fragment_subgroup() { return 0; }
#else
int fragment_lane() { return int(gl_SubgroupInvocationID); }
int fragment_subgroup() { return int(gl_SubgroupID); }
#endif
#endif
