"""Device code for scalars: half precision as it lies in memory, conversions, arithmetic as the language defines it."""

from __future__ import annotations

NUMBERS: dict[str, str] = {
    # --- scalars as they lie in memory -------------------------------------------------------------
    "ph_f16": """\
struct ph_f16 { unsigned short bits; };
""",
    "ph_bf16": """\
struct ph_bf16 { unsigned short bits; };
""",
    "ph_f16_to": """\
__device__ __forceinline__ float ph_f16_to(ph_f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
""",
    "ph_to_f16": """\
__device__ __forceinline__ ph_f16 ph_to_f16(float x) {
  ph_f16 y;
#if __CUDA_ARCH__ >= 800  // as one of a pair: the conversion of one alone has a slower unit
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, 0f00000000, %1;" : "=r"(pair) : "f"(x));
  y.bits = (unsigned short)pair;
#else
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#endif
  return y;
}
__device__ __forceinline__ ph_f16 ph_to_f16(double x) {
  ph_f16 y;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
  return y;
}
__device__ __forceinline__ ph_f16 ph_to_f16(int x) {
  ph_f16 y;
  asm("cvt.rn.f16.s32 %0, %1;" : "=h"(y.bits) : "r"(x));
  return y;
}
__device__ __forceinline__ ph_f16 ph_to_f16(long long x) {
  ph_f16 y;
  asm("cvt.rn.f16.s64 %0, %1;" : "=h"(y.bits) : "l"(x));
  return y;
}
""",
    "ph_round_f16": """\
template <typename T> __device__ __forceinline__ float ph_round_f16(T x) { return ph_f16_to(ph_to_f16(x)); }
""",
    "ph_bf16_to": """\
__device__ __forceinline__ float ph_bf16_to(ph_bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
""",
    "ph_to_bf16": """\
__device__ __forceinline__ ph_bf16 ph_to_bf16(float x) {
  ph_bf16 y;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  const unsigned b = __float_as_uint(x);
  y.bits = x != x ? 0x7fff : (unsigned short)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
#endif
  return y;
}
""",
    "ph_round_bf16": """\
__device__ __forceinline__ float ph_round_bf16(float x) { return ph_bf16_to(ph_to_bf16(x)); }
""",
    "ph_odd": """\
// Toward zero, and odd if anything was lost: the nearest of fewer bits to that is the nearest to `x`.
__device__ __forceinline__ float ph_toward_zero(double x) { return __double2float_rz(x); }
__device__ __forceinline__ float ph_toward_zero(int x) { return __int2float_rz(x); }
__device__ __forceinline__ float ph_toward_zero(long long x) { return __ll2float_rz(x); }
template <typename T> __device__ __forceinline__ float ph_odd(T x) {
  const float y = ph_toward_zero(x);
  return (T)y == x || x != x ? y : __uint_as_float(__float_as_uint(y) | 1);
}
""",
    # --- conversions -------------------------------------------------------------------------------
    "ph_saturate": """\
// Toward zero; what does not fit becomes the nearest value that does, NaN becomes 0.
__device__ __forceinline__ long long ph_saturate(double x, double low, double high) {
  return x != x ? 0 : x <= low ? (long long)low : x >= high ? (long long)high : (long long)x;
}
""",
    "ph_saturate_i64": """\
__device__ __forceinline__ long long ph_saturate_i64(double x) {
  return x != x ? 0 : x <= -9223372036854775808.0 ? -9223372036854775807LL - 1
       : x >= 9223372036854775808.0 ? 9223372036854775807LL : (long long)x;
}
""",
    "ph_saturate_i32": """\
__device__ __forceinline__ int ph_saturate_i32(float x) {
  return x != x ? 0 : x <= -2147483648.0f ? -2147483647 - 1 : x >= 2147483648.0f ? 2147483647 : (int)x;
}
""",
    # --- arithmetic --------------------------------------------------------------------------------
    "ph_shift_left": """\
template <typename T> __device__ __forceinline__ T ph_shift_left(T x, long long n) {
  return n < 0 || n >= (long long)(8 * sizeof(T)) ? T(0) : (T)((unsigned long long)x << n);
}
""",
    "ph_shift_right": """\
template <typename T> __device__ __forceinline__ T ph_shift_right(T x, long long n) {
  return x >> (n < 0 || n >= (long long)(8 * sizeof(T)) ? 8 * sizeof(T) - 1 : n);
}
""",
    "ph_divide": """\
// Toward zero; division by zero gives 0 here, a fault in the reference runtime.
template <typename T> __device__ __forceinline__ T ph_divide(T a, T b) {
  return b == 0 ? T(0) : b == -1 ? (T)(0 - a) : a / b;
}
""",
    "ph_remainder": """\
template <typename T> __device__ __forceinline__ T ph_remainder(T a, T b) { return b == 0 || b == -1 ? T(0) : a % b; }
""",
    "ph_max": """\
template <typename T> __device__ __forceinline__ T ph_max(T a, T b) { return a > b ? a : b; }
""",
    "ph_min": """\
template <typename T> __device__ __forceinline__ T ph_min(T a, T b) { return a < b ? a : b; }
""",
    "ph_exp": """\
// One multiplication and one instruction; what is too small for a normal number becomes 0.
__device__ __forceinline__ float ph_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}
__device__ __forceinline__ double ph_exp(double x) { return exp(x); }
""",
    "ph_exp_of": """\
// exp(a * b + c), where `b` and `c` are one for many `a`: the factor of base two goes into them, and each `a` takes one
// sum and one instruction. It stays away where it could overflow. Beside so large a `c` a sum is 0, or out of reach for
// either base; a product with so large a `b` is 0 or out of reach, too, for an `a` that is not under 2^-110.
__device__ __forceinline__ float ph_exp_of(float a, float b, float c) {
  const float most = 8.5070592e37f, base = 1.4426950408889634f;  // 2^126
  const float scale = fmaxf(fabsf(b), fabsf(c)) < most ? b * base : b, shift = fabsf(c) < most ? c * base : c;
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(fmaf(a, scale, shift)));
  return y;
}
""",
    "ph_log": """\
__device__ __forceinline__ float ph_log(float x) { return __logf(x); }
__device__ __forceinline__ double ph_log(double x) { return log(x); }
""",
    "ph_sqrt": """\
__device__ __forceinline__ float ph_sqrt(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ double ph_sqrt(double x) { return sqrt(x); }
""",
    "ph_tanh": """\
__device__ __forceinline__ float ph_tanh(float x) { return tanhf(x); }
__device__ __forceinline__ double ph_tanh(double x) { return tanh(x); }
""",
    "ph_round": """\
__device__ __forceinline__ float ph_round(float x) { return rintf(x); }
__device__ __forceinline__ double ph_round(double x) { return rint(x); }
""",
    "ph_pow": """\
__device__ __forceinline__ float ph_pow(float x, float y) { return powf(x, y); }
__device__ __forceinline__ double ph_pow(double x, double y) { return pow(x, y); }
""",
}
