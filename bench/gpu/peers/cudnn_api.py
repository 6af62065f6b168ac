"""cuDNN 9's graph API and the older convolution calls, as cudnn_graph.h and cudnn_cnn.h have them: numbers by the headers' own
names (a test compares them with the headers), functions with their types."""

import ctypes

Pointer, Int, Size, I64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int64
Out = ctypes.POINTER

CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16 = 0, 2, 9
CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, CUDNN_FMA_MATH = 0, 1, 2, 3
CUDNN_TENSOR_NHWC = 1
CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY = 1, 5
CUDNN_NOT_PROPAGATE_NAN = 0
CUDNN_CROSS_CORRELATION = 1
CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1

CUDNN_TYPE_HANDLE, CUDNN_TYPE_DATA_TYPE, CUDNN_TYPE_BOOLEAN, CUDNN_TYPE_INT64 = 0, 1, 2, 3
CUDNN_TYPE_FLOAT, CUDNN_TYPE_VOID_PTR, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_TYPE_HEUR_MODE = 4, 6, 7, 8
CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_TYPE_BACKEND_DESCRIPTOR = 11, 14, 15

CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0
CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1
CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2
CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3
CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4
CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5
CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10
CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13
CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15
CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16
CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17

CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD = 0, 100
CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK, CUDNN_HEUR_MODE_A = 1, 2, 3
CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 0, 1

CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC = 0, 1
CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_ATTR_CONVOLUTION_DILATIONS = 100, 101, 102
CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 103, 104
CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 105, 106
CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_RESULTS = 200, 201, 202
CUDNN_ATTR_ENGINECFG_ENGINE = 300
CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 400, 401
CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402
CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 700, 701
CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 702, 703
CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 704, 705
CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 750, 751
CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 752, 753
CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_OPS = 800, 801
CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS = 900, 901, 902
CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_IS_VIRTUAL = 903, 906, 907
CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1000, 1001
CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003
CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1301, 1303


class AlgoPerf(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t."""

    _fields_ = [("algo", Int), ("status", Int), ("time", ctypes.c_float), ("memory", Size), ("determinism", Int),
                ("mathType", Int), ("reserved", Int * 3)]


GRAPH = {
    "cudnnGetVersion": (Size,),
    "cudnnGetErrorString": (ctypes.c_char_p, Int),
    "cudnnGetLastErrorString": (None, ctypes.c_char_p, Size),
    "cudnnCreate": (Int, Out(Pointer)),
    "cudnnDestroy": (Int, Pointer),
    "cudnnSetStream": (Int, Pointer, Pointer),
    "cudnnBackendCreateDescriptor": (Int, Int, Out(Pointer)),
    "cudnnBackendDestroyDescriptor": (Int, Pointer),
    "cudnnBackendFinalize": (Int, Pointer),
    "cudnnBackendSetAttribute": (Int, Pointer, Int, Int, I64, Pointer),
    "cudnnBackendGetAttribute": (Int, Pointer, Int, Int, I64, Out(I64), Pointer),
    "cudnnBackendExecute": (Int, Pointer, Pointer, Pointer),
}
LEGACY = {
    "cudnnCreateTensorDescriptor": (Int, Out(Pointer)),
    "cudnnSetTensor4dDescriptor": (Int, Pointer, Int, Int, Int, Int, Int, Int),
    "cudnnDestroyTensorDescriptor": (Int, Pointer),
    "cudnnCreateFilterDescriptor": (Int, Out(Pointer)),
    "cudnnSetFilter4dDescriptor": (Int, Pointer, Int, Int, Int, Int, Int, Int),
    "cudnnDestroyFilterDescriptor": (Int, Pointer),
    "cudnnCreateConvolutionDescriptor": (Int, Out(Pointer)),
    "cudnnSetConvolution2dDescriptor": (Int, Pointer, Int, Int, Int, Int, Int, Int, Int, Int),
    "cudnnSetConvolutionGroupCount": (Int, Pointer, Int),
    "cudnnSetConvolutionMathType": (Int, Pointer, Int),
    "cudnnDestroyConvolutionDescriptor": (Int, Pointer),
    "cudnnCreateActivationDescriptor": (Int, Out(Pointer)),
    "cudnnSetActivationDescriptor": (Int, Pointer, Int, Int, ctypes.c_double),
    "cudnnDestroyActivationDescriptor": (Int, Pointer),
    "cudnnFindConvolutionForwardAlgorithmEx": (Int, *[Pointer] * 8, Int, Out(Int), Out(AlgoPerf), Pointer, Size),
    "cudnnGetConvolutionForwardWorkspaceSize": (Int, *[Pointer] * 5, Int, Out(Size)),
    "cudnnConvolutionForward": (Int, *[Pointer] * 7, Int, Pointer, Size, *[Pointer] * 3),
    "cudnnConvolutionBiasActivationForward": (Int, *[Pointer] * 7, Int, Pointer, Size, *[Pointer] * 8),
}
