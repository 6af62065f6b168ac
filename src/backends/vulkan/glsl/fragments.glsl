// Fragments: parts of matrices, kFragmentM x kFragmentN sums of kFragmentK products each, that a subgroup holds together and
// multiplies by its matrix unit (VK_KHR_cooperative_matrix); in a shader built with WORKGROUP all of a workgroup does
// (VK_NV_cooperative_matrix2), and counts as one subgroup here. Compilers of GLSL that know no such extension take types and
// instructions by number; the element types 0x7f16 and 0x7f32 and the sizes 0x7fa0 to 0x7fa2 are put right when the shader is
// loaded (fragment_types.h). The tiles `left` and `right` in shared memory are vectors of four along k, rows of the left and
// columns of the right one: so are lanes' parts of them, and a driver has no reason to bring in half of them at a time. `staging` takes
// sums. Places and strides count fp16 values. fragments_emulated.glsl has the same by other means.
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
const int kRowMajor = 0, kColumnMajor = 1;
#define FRAGMENT(type, m, n, use) spirv_type(extensions = FRAGMENT_EXTENSIONS, capabilities = [6022, 5345], id = 4456, type, kScope, m, n, use)
#define LeftFragment FRAGMENT(0x7f16, kSizeM, kSizeK, kUseLeft)
#define RightFragment FRAGMENT(0x7f16, kSizeK, kSizeN, kUseRight)
#define Sums FRAGMENT(0x7f32, kSizeM, kSizeN, kUseSums)
// Accesses to shared memory are not private, and barriers make what was stored available and visible. GLSL asks for that at every
// access too, where drivers wait each time: it is taken off when the shader is loaded.
const int kNonPrivate = 0x20;
spirv_instruction(id = 4457) LeftFragment load_left(spirv_by_reference f16vec4 from, int major, int stride, spirv_literal int access);
spirv_instruction(id = 4457) RightFragment load_right(spirv_by_reference f16vec4 from, int major, int stride, spirv_literal int access);
spirv_instruction(id = 4458) void store_sums(spirv_by_reference float to, Sums sums, int major, int stride, spirv_literal int access);
spirv_instruction(id = 4459) Sums multiplied(LeftFragment a, RightFragment b, Sums sums);
spirv_instruction(id = 80) Sums splat(float value);
// What kernels use. Macros, since no function of GLSL takes a reference.
#define LEFT_AT(at, stride) load_left(left[(at) >> 2], kRowMajor, (stride) >> 2, kNonPrivate)
#define RIGHT_AT(at, stride) load_right(right[(at) >> 2], kColumnMajor, (stride) >> 2, kNonPrivate)
#define CLEAR(sums) sums = splat(0.0)
#define ADD_PRODUCT(sums, a, b) sums = multiplied(a, b, sums)
#define STORE_SUMS(at, stride, sums) store_sums(staging[at], sums, kRowMajor, stride, kNonPrivate)
// Between what the workgroup's threads do to shared memory; and between what those do that hold a fragment together.
const int kSeen = gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible;
void tile_barrier() { controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsShared, kSeen); }
#ifdef WORKGROUP
void own_barrier() { tile_barrier(); }
int fragment_lane() { return int(gl_LocalInvocationID.x); }
int fragment_subgroup() { return 0; }
#else
void own_barrier() { controlBarrier(gl_ScopeSubgroup, gl_ScopeWorkgroup, gl_StorageSemanticsShared, kSeen); }
int fragment_lane() { return int(gl_SubgroupInvocationID); }
int fragment_subgroup() { return int(gl_SubgroupID); }
#endif
