// Memory by address: pointers to scalars and vectors of each element type.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Vec4s { vec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Ints { int v[]; };

// A workgroup is size_x x size_y x size_z threads: the first three constants of every kernel.
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
