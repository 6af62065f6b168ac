// Memory by address: pointers to scalars and vectors of each element type.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Vec4s { vec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Ints { int v[]; };

// Elements of the tensors that a kernel reads and writes: f16 in shaders built with -DHALF, else f32. f16 is storage alone: what
// is loaded goes into f32 at once, what is stored is rounded to nearest even.
#ifdef HALF
#extension GL_EXT_shader_16bit_storage : require
#define ELEMENT float16_t
#define ELEMENT_BYTES 2
#define ELEMENT4 f16vec4
#else
#define ELEMENT float
#define ELEMENT_BYTES 4
#define ELEMENT4 vec4
#endif
layout(buffer_reference, scalar, buffer_reference_align = ELEMENT_BYTES) buffer Elements { ELEMENT v[]; };
layout(buffer_reference, scalar, buffer_reference_align = ELEMENT_BYTES * 4) buffer Element4s { ELEMENT4 v[]; };

// A workgroup is size_x x size_y x size_z threads: the first three constants of every kernel.
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
