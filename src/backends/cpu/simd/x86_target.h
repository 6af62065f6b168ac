// Code for x86 instruction sets that Highway's targets leave out, such as dot products of bytes. Between SPARKLE_X86_BEGIN(...)
// and SPARKLE_X86_END functions may use the intrinsics of the features named, whatever the file is compiled for; they run only
// where the device description lists the unit. Include standard headers before, never between.
#pragma once

#define SPARKLE_X86 0
#if defined(__x86_64__)
#undef SPARKLE_X86
#define SPARKLE_X86 1
#include <immintrin.h>

#define SPARKLE_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define SPARKLE_X86_BEGIN(features) SPARKLE_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define SPARKLE_X86_END _Pragma("clang attribute pop")
#else
#define SPARKLE_X86_BEGIN(features) _Pragma("GCC push_options") SPARKLE_PRAGMA(GCC target(features))
#define SPARKLE_X86_END _Pragma("GCC pop_options")
#endif

// What each unit of a device description stands for.
#define SPARKLE_FEATURES_AVX2 "avx2,fma"
#define SPARKLE_FEATURES_AVX_VNNI "avx2,fma,avxvnni"
#define SPARKLE_FEATURES_AVX512 "avx2,fma,avx512f,avx512bw,avx512vl,avx512dq"
#define SPARKLE_FEATURES_AVX512_VNNI "avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"
#endif
