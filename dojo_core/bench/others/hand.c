// The 16 kernels of the paper's table 3 by hand, with the arithmetic that their programs have: AVX-512 and OpenMP,
// for these shapes alone.
//
// Every entry is void hand_NAME(void *const *arrays): the kernel's inputs, then its output. Arrays begin at a
// cache line. hand_NAME_pack packs constant weights beforehand for hand_NAME_packed. hand.py builds this file and
// offers, where two ways are plausible, each as a variant. It builds one kernel at a time (-DHAND_MUL): all of
// them take the compiler three seconds.

#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <sys/mman.h>

#define INLINE static inline __attribute__((always_inline))
// A tile's loop in a function of its own: its registers are its own too.
#define APART static __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 64")
#define ALIGNED __attribute__((aligned(64)))

// An entry's body: every thread of the team calls. A region within the called function would see the function's
// arguments as variables, where this way they are constants to it.
#define TEAM(CALL) \
    { \
        _Pragma("omp parallel num_threads(team())") { CALL; } \
    }

typedef __m512 V;

INLINE V load(const float *p) { return _mm512_loadu_ps(p); }
INLINE V all(float x) { return _mm512_set1_ps(x); }
INLINE V zero(void) { return _mm512_setzero_ps(); }
INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
INLINE V sub(V a, V b) { return _mm512_sub_ps(a, b); }
INLINE V mad(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
INLINE void fetch(const float *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
INLINE void fetch2(const float *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }

INLINE void put(float *p, V v, int stream) {
    if (stream) _mm512_stream_ps(p, v);
    else _mm512_storeu_ps(p, v);
}

// e^x: 2^(n + f), n whole, |f| at most 1/2; the polynomial is off by 9e-08.
INLINE V exponential(V x) {
    const V log2e = all(1.44269504088896341f);
    V n = _mm512_roundscale_ps(_mm512_mul_ps(x, log2e), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    V f = _mm512_fmsub_ps(x, log2e, n);
    V p = all(0.00132647352f);
    p = mad(p, f, all(0.00967151754f));
    p = mad(p, f, all(0.0555073377f));
    p = mad(p, f, all(0.24022242f));
    p = mad(p, f, all(0.693146978f));
    p = mad(p, f, all(1.0f));
    return _mm512_scalef_ps(p, n);
}

// Scratch in huge pages, for all and for each thread, made once when the library is loaded.
enum { MOST_THREADS = 64, COMMON_BYTES = 8 << 20, OWN_BYTES = 4 << 20, HUGE_PAGE = 2 << 20 };
static char *scratch;

__attribute__((constructor)) static void make_scratch(void) {
    size_t bytes = COMMON_BYTES + (size_t)MOST_THREADS * OWN_BYTES;
    scratch = aligned_alloc(HUGE_PAGE, bytes);
    if (!scratch) abort();
#ifdef MADV_HUGEPAGE
    madvise(scratch, bytes, MADV_HUGEPAGE);
#endif
}

INLINE int team(void) { return omp_get_max_threads() < MOST_THREADS ? omp_get_max_threads() : MOST_THREADS; }
INLINE float *common(void) { return (float *)scratch; }
INLINE float *own(void) { return (float *)(scratch + COMMON_BYTES + (long)omp_get_thread_num() * OWN_BYTES); }

// This thread's part of count things.
INLINE void share(long count, long *first, long *last) {
    long threads = omp_get_num_threads(), thread = omp_get_thread_num();
    *first = count * thread / threads;
    *last = count * (thread + 1) / threads;
}

// ---------------------------------------------------------------------------------------------- element-wise

enum { ADD, MUL, RELU };

INLINE V apply(int what, V x, V y) {
    return what == ADD ? _mm512_add_ps(x, y) : what == MUL ? _mm512_mul_ps(x, y) : _mm512_max_ps(x, zero());
}

INLINE void elementwise(int what, void *const *arrays, long count, int stream, long ahead) {
    const float *x = arrays[0], *y = what == RELU ? 0 : arrays[1];
    float *z = arrays[what == RELU ? 1 : 2];
    long i, last;
    share(count / 64, &i, &last);
    for (i *= 64, last *= 64; i < last; i += 64) {
        UNROLL for (int j = 0; j < 64; j += 16) {
            if (ahead) {
                fetch(x + i + j + ahead);
                if (y) fetch(y + i + j + ahead);
            }
            put(z + i + j, apply(what, load(x + i + j), y ? load(y + i + j) : zero()), stream);
        }
    }
    if (stream) _mm_sfence();
}

#define ELEMENTWISE(NAME, WHAT, COUNT, STREAM, AHEAD) \
    void NAME(void *const *arrays) TEAM(elementwise(WHAT, arrays, COUNT, STREAM, AHEAD))
#ifdef HAND_ADD
ELEMENTWISE(hand_add, ADD, 3072L * 4096, 0, 512)
ELEMENTWISE(hand_add_stream, ADD, 3072L * 4096, 1, 0)
ELEMENTWISE(hand_add_stream_near, ADD, 3072L * 4096, 1, 256)
ELEMENTWISE(hand_add_stream_far, ADD, 3072L * 4096, 1, 768)
#endif
#ifdef HAND_MUL
ELEMENTWISE(hand_mul, MUL, 6L * 14336, 0, 0)
ELEMENTWISE(hand_mul_fetch, MUL, 6L * 14336, 0, 256)
#endif
#ifdef HAND_RELU
ELEMENTWISE(hand_relu, RELU, 4096L * 4096, 0, 512)
ELEMENTWISE(hand_relu_stream, RELU, 4096L * 4096, 1, 0)
ELEMENTWISE(hand_relu_stream_near, RELU, 4096L * 4096, 1, 256)
ELEMENTWISE(hand_relu_stream_far, RELU, 4096L * 4096, 1, 768)
#endif

INLINE void scaled(void *const *arrays, int stream, long ahead) {
    enum { PLANES = 8 * 64, CHANNELS = 64, PLANE = 112 * 112 };
    const float *x = arrays[0], *w = arrays[1], *b = arrays[2];
    float *y = arrays[3];
    long plane, last;
    share(PLANES, &plane, &last);
    for (; plane < last; plane++) {
        const V s = all(w[plane % CHANNELS]), t = all(b[plane % CHANNELS]);
        const float *from = x + plane * PLANE;
        float *to = y + plane * PLANE;
        for (long i = 0; i < PLANE; i += 64) {
            UNROLL for (int j = 0; j < 64; j += 16) {
                if (ahead) fetch(from + i + j + ahead);
                put(to + i + j, _mm512_max_ps(mad(load(from + i + j), s, t), zero()), stream);
            }
        }
    }
    if (stream) _mm_sfence();
}

#ifdef HAND_RELU_FFN
void hand_relu_ffn(void *const *arrays) TEAM(scaled(arrays, 0, 512))
void hand_relu_ffn_stream(void *const *arrays) TEAM(scaled(arrays, 1, 0))
void hand_relu_ffn_stream_near(void *const *arrays) TEAM(scaled(arrays, 1, 256))
void hand_relu_ffn_stream_far(void *const *arrays) TEAM(scaled(arrays, 1, 768))
#endif

// ---------------------------------------------------------------------------------------------- reductions

// The mean of 4096 columns, a few rows at a time: as many streams from memory.
INLINE void means(void *const *arrays, int rows, long ahead) {
    enum { ROWS = 4096, COLUMNS = 4096 };
    const float *x = arrays[0];
    float *y = arrays[1];
    long row, last;
    share(ROWS / rows, &row, &last);
    for (; row < last; row++) {
        const float *from = x + row * rows * COLUMNS;
        V s[4][4];
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < 4; j++) s[r][j] = zero();
        for (long i = 0; i < COLUMNS; i += 64) {
            UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < 4; j++) {
                const float *p = from + r * COLUMNS + i + 16 * j;
                if (ahead) fetch(p + ahead);
                s[r][j] = _mm512_add_ps(s[r][j], load(p));
            }
        }
        UNROLL for (int r = 0; r < rows; r++) {
            V t = _mm512_add_ps(_mm512_add_ps(s[r][0], s[r][1]), _mm512_add_ps(s[r][2], s[r][3]));
            y[row * rows + r] = _mm512_reduce_add_ps(t) * (1.0f / COLUMNS);
        }
    }
}

#ifdef HAND_REDUCEMEAN
void hand_reducemean(void *const *arrays) TEAM(means(arrays, 1, 0))
void hand_reducemean_near(void *const *arrays) TEAM(means(arrays, 1, 512))
void hand_reducemean_far(void *const *arrays) TEAM(means(arrays, 1, 2048))
void hand_reducemean_rows(void *const *arrays) TEAM(means(arrays, 4, 512))
void hand_reducemean_two(void *const *arrays) TEAM(means(arrays, 2, 1024))
#endif

INLINE void softmax(void *const *arrays, int stream, long ahead) {
    enum { ROWS = 24576, COLUMNS = 512 };
    const float *x = arrays[0];
    float *y = arrays[1];
    long row, last;
    float e[COLUMNS] ALIGNED;
    share(ROWS, &row, &last);
    for (; row < last; row++) {
        const float *from = x + row * COLUMNS;
        float *to = y + row * COLUMNS;
        V m[4], s[4];
        UNROLL for (int j = 0; j < 4; j++) m[j] = load(from + 16 * j), s[j] = zero();
        for (long i = 0; i < COLUMNS; i += 64) {
            UNROLL for (int j = 0; j < 4; j++) {
                if (ahead) fetch(from + i + 16 * j + ahead);
                m[j] = _mm512_max_ps(m[j], load(from + i + 16 * j));
            }
        }
        V most = all(_mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(m[0], m[1]), _mm512_max_ps(m[2], m[3]))));
        for (long i = 0; i < COLUMNS; i += 64) {
            UNROLL for (int j = 0; j < 4; j++) {
                V v = exponential(_mm512_sub_ps(load(from + i + 16 * j), most));
                s[j] = _mm512_add_ps(s[j], v);
                _mm512_store_ps(e + i + 16 * j, v);
            }
        }
        float sum = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s[0], s[1]), _mm512_add_ps(s[2], s[3])));
        V factor = all(1.0f / sum);
        UNROLL for (long i = 0; i < COLUMNS; i += 16) put(to + i, _mm512_mul_ps(load(e + i), factor), stream);
    }
    if (stream) _mm_sfence();
}

// The same with three rows in flight: one's quotients are stored, the next one's powers are taken, the one after
// is searched for its maximum. The reductions' latencies hide behind the rest.
INLINE V folded(const V v[4], int most) {
    if (most) return _mm512_max_ps(_mm512_max_ps(v[0], v[1]), _mm512_max_ps(v[2], v[3]));
    return _mm512_add_ps(_mm512_add_ps(v[0], v[1]), _mm512_add_ps(v[2], v[3]));
}

INLINE void softmax_flight(void *const *arrays, int stream, long ahead) {
    enum { ROWS = 24576, COLUMNS = 512 };
    const float *x = arrays[0];
    float *y = arrays[1];
    long row, last;
    float e[2][COLUMNS] ALIGNED;
    share(ROWS, &row, &last);
    V m[4], s[4], most, factor = zero();
    UNROLL for (int j = 0; j < 4; j++) m[j] = load(x + row * COLUMNS + 16 * j);
    for (long i = 64; i < COLUMNS; i += 64) {
        UNROLL for (int j = 0; j < 4; j++) m[j] = _mm512_max_ps(m[j], load(x + row * COLUMNS + i + 16 * j));
    }
    most = all(_mm512_reduce_max_ps(folded(m, 1)));
    const long first = row;
    for (; row < last; row++) {
        const float *from = x + row * COLUMNS, *next = row + 1 < last ? from + COLUMNS : from;
        float *to = row > first ? y + (row - 1) * COLUMNS : y + row * COLUMNS, *now = e[row & 1], *before = e[~row & 1];
        UNROLL for (int j = 0; j < 4; j++) m[j] = load(next + 16 * j), s[j] = zero();
        for (long i = 0; i < COLUMNS; i += 64) {
            UNROLL for (int j = 0; j < 4; j++) {
                long at = i + 16 * j;
                if (ahead) fetch(next + at + ahead);
                m[j] = _mm512_max_ps(m[j], load(next + at));
                V v = exponential(_mm512_sub_ps(load(from + at), most));
                s[j] = _mm512_add_ps(s[j], v);
                _mm512_store_ps(now + at, v);
                if (row > first) put(to + at, _mm512_mul_ps(load(before + at), factor), stream);
            }
        }
        most = all(_mm512_reduce_max_ps(folded(m, 1)));
        factor = _mm512_div_ps(all(1.0f), all(_mm512_reduce_add_ps(folded(s, 0))));
    }
    for (long i = 0; i < COLUMNS; i += 16) put(y + (last - 1) * COLUMNS + i, _mm512_mul_ps(load(e[~last & 1] + i), factor), stream);
    if (stream) _mm_sfence();
}

#ifdef HAND_SOFTMAX
void hand_softmax_flight(void *const *arrays) TEAM(softmax_flight(arrays, 0, 512))
void hand_softmax_flight_stream(void *const *arrays) TEAM(softmax_flight(arrays, 1, 0))
void hand_softmax_flight_stream_near(void *const *arrays) TEAM(softmax_flight(arrays, 1, 512))
void hand_softmax_flight_stream_far(void *const *arrays) TEAM(softmax_flight(arrays, 1, 1536))
void hand_softmax(void *const *arrays) TEAM(softmax(arrays, 0, 1024))
void hand_softmax_stream(void *const *arrays) TEAM(softmax(arrays, 1, 0))
void hand_softmax_stream_near(void *const *arrays) TEAM(softmax(arrays, 1, 512))
void hand_softmax_stream_far(void *const *arrays) TEAM(softmax(arrays, 1, 1536))
#endif

// ---------------------------------------------------------------------------------------------- normalisation

// Layer norm, or with root alone RMS norm. A row stays in L1, so that its two passes of statistics are cheap.
INLINE void norm(void *const *arrays, int root, long rows, long columns, int stream, long ahead) {
    const float *x = arrays[0], *g = arrays[1], *h = root ? 0 : arrays[2];
    float *y = arrays[root ? 2 : 3];
    long row, last;
    share(rows, &row, &last);
    for (; row < last; row++) {
        const float *from = x + row * columns;
        float *to = y + row * columns;
        V s[8], mean = zero();
        if (!root) {
            UNROLL for (int j = 0; j < 8; j++) s[j] = zero();
            for (long i = 0; i < columns; i += 128) {
                UNROLL for (int j = 0; j < 8; j++) s[j] = _mm512_add_ps(s[j], load(from + i + 16 * j));
            }
            UNROLL for (int d = 4; d; d /= 2) UNROLL for (int j = 0; j < d; j++) s[j] = _mm512_add_ps(s[j], s[j + d]);
            mean = all(_mm512_reduce_add_ps(s[0]) / columns);
        }
        UNROLL for (int j = 0; j < 8; j++) s[j] = zero();
        for (long i = 0; i < columns; i += 128) {
            UNROLL for (int j = 0; j < 8; j++) {
                V d = load(from + i + 16 * j);
                if (!root) d = _mm512_sub_ps(d, mean);
                s[j] = mad(d, d, s[j]);
            }
        }
        UNROLL for (int d = 4; d; d /= 2) UNROLL for (int j = 0; j < d; j++) s[j] = _mm512_add_ps(s[j], s[j + d]);
        float v = _mm512_reduce_add_ps(s[0]) / columns + (root ? 1e-6f : 1e-5f);
        V r = all(1.0f / sqrtf(v));
        for (long i = 0; i < columns; i += 64) {
            UNROLL for (int j = 0; j < 64; j += 16) {
                if (ahead) fetch(from + i + j + ahead);
                V d = load(from + i + j);
                if (root) d = _mm512_mul_ps(_mm512_mul_ps(d, r), load(g + i + j));
                else d = mad(_mm512_mul_ps(_mm512_sub_ps(d, mean), r), load(g + i + j), load(h + i + j));
                put(to + i + j, d, stream);
            }
        }
    }
    if (stream) _mm_sfence();
}

// The same with two rows in flight: one's statistics, around its first element in one pass, while the one before
// is stored.
INLINE void norm_flight(void *const *arrays, int root, long rows, long columns, int stream, long ahead) {
    const float *x = arrays[0], *g = arrays[1], *h = root ? 0 : arrays[2];
    float *y = arrays[root ? 2 : 3];
    long row, last;
    share(rows, &row, &last);
    const long first = row;
    V mean = zero(), r = zero();
    for (; row <= last; row++) {
        const float *from = x + row * columns, *before = row > first ? from - columns : from;
        float *to = y + (row - 1) * columns;
        const V around = row < last && !root ? all(from[0]) : zero();
        V s[4], q[4];
        UNROLL for (int j = 0; j < 4; j++) s[j] = q[j] = zero();
        for (long i = 0; i < columns; i += 64) {
            UNROLL for (int j = 0; j < 4; j++) {
                long at = i + 16 * j;
                if (row < last) {
                    if (ahead) fetch(from + at + ahead);
                    V d = load(from + at);
                    if (!root) {
                        d = _mm512_sub_ps(d, around);
                        s[j] = _mm512_add_ps(s[j], d);
                    }
                    q[j] = mad(d, d, q[j]);
                }
                if (row > first) {
                    V d = load(before + at);
                    if (root) d = _mm512_mul_ps(_mm512_mul_ps(d, r), load(g + at));
                    else d = mad(_mm512_mul_ps(_mm512_sub_ps(d, mean), r), load(g + at), load(h + at));
                    put(to + at, d, stream);
                }
            }
        }
        float off = root ? 0 : _mm512_reduce_add_ps(folded(s, 0)) / columns;
        float v = _mm512_reduce_add_ps(folded(q, 0)) / columns - off * off;
        mean = _mm512_add_ps(around, all(off));
        r = all(1.0f / sqrtf(v + (root ? 1e-6f : 1e-5f)));
    }
    if (stream) _mm_sfence();
}

#define NORM(NAME, ROOT, ROWS, COLUMNS, STREAM, AHEAD) \
    void NAME(void *const *arrays) TEAM(norm(arrays, ROOT, ROWS, COLUMNS, STREAM, AHEAD))
#define NORM_FLIGHT(NAME, ROOT, ROWS, COLUMNS, STREAM, AHEAD) \
    void NAME(void *const *arrays) TEAM(norm_flight(arrays, ROOT, ROWS, COLUMNS, STREAM, AHEAD))
#ifdef HAND_LAYERNORM_1024
NORM_FLIGHT(hand_layernorm_1024_flight, 0, 16384, 1024, 0, 1024)
NORM_FLIGHT(hand_layernorm_1024_flight_stream, 0, 16384, 1024, 1, 0)
NORM_FLIGHT(hand_layernorm_1024_flight_stream_near, 0, 16384, 1024, 1, 512)
NORM_FLIGHT(hand_layernorm_1024_flight_stream_far, 0, 16384, 1024, 1, 1536)
#endif
#ifdef HAND_LAYERNORM_4096
NORM_FLIGHT(hand_layernorm_4096_flight, 0, 4096, 4096, 0, 1024)
NORM_FLIGHT(hand_layernorm_4096_flight_stream, 0, 4096, 4096, 1, 0)
NORM_FLIGHT(hand_layernorm_4096_flight_stream_near, 0, 4096, 4096, 1, 512)
NORM_FLIGHT(hand_layernorm_4096_flight_stream_far, 0, 4096, 4096, 1, 1536)
#endif
#ifdef HAND_RMSNORM
NORM_FLIGHT(hand_rmsnorm_flight, 1, 3072, 4096, 0, 1024)
NORM_FLIGHT(hand_rmsnorm_flight_stream, 1, 3072, 4096, 1, 0)
NORM_FLIGHT(hand_rmsnorm_flight_stream_near, 1, 3072, 4096, 1, 512)
NORM_FLIGHT(hand_rmsnorm_flight_stream_far, 1, 3072, 4096, 1, 1536)
#endif
#ifdef HAND_LAYERNORM_1024
NORM(hand_layernorm_1024, 0, 16384, 1024, 0, 1024)
NORM(hand_layernorm_1024_stream, 0, 16384, 1024, 1, 0)
NORM(hand_layernorm_1024_stream_near, 0, 16384, 1024, 1, 1024)
NORM(hand_layernorm_1024_stream_far, 0, 16384, 1024, 1, 2048)
#endif
#ifdef HAND_LAYERNORM_4096
NORM(hand_layernorm_4096, 0, 4096, 4096, 0, 4096)
NORM(hand_layernorm_4096_stream, 0, 4096, 4096, 1, 0)
NORM(hand_layernorm_4096_stream_near, 0, 4096, 4096, 1, 4096)
NORM(hand_layernorm_4096_stream_far, 0, 4096, 4096, 1, 6144)
#endif
#ifdef HAND_RMSNORM
NORM(hand_rmsnorm, 1, 3072, 4096, 0, 4096)
NORM(hand_rmsnorm_stream, 1, 3072, 4096, 1, 0)
NORM(hand_rmsnorm_stream_near, 1, 3072, 4096, 1, 4096)
NORM(hand_rmsnorm_stream_far, 1, 3072, 4096, 1, 6144)
#endif

// Sums of x - around and of its square. Pieces of 4096 or fewer are summed in f32, the rest in f64.
INLINE void moments(const float *x, long count, float around, long ahead, double sums[2]) {
    const V a = all(around);
    for (long piece = 0; piece < count; piece += 4096) {
        long end = piece + 4096 < count ? piece + 4096 : count;
        V s[4], q[4];
        UNROLL for (int j = 0; j < 4; j++) s[j] = q[j] = zero();
        long i = piece;
        for (; i + 64 <= end; i += 64) {
            UNROLL for (int j = 0; j < 4; j++) {
                if (ahead) fetch(x + i + 16 * j + ahead);
                V d = _mm512_sub_ps(load(x + i + 16 * j), a);
                s[j] = _mm512_add_ps(s[j], d);
                q[j] = mad(d, d, q[j]);
            }
        }
        for (; i < end; i += 16) {
            V d = _mm512_sub_ps(load(x + i), a);
            s[0] = _mm512_add_ps(s[0], d);
            q[0] = mad(d, d, q[0]);
        }
        sums[0] += _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s[0], s[1]), _mm512_add_ps(s[2], s[3])));
        sums[1] += _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(q[0], q[1]), _mm512_add_ps(q[2], q[3])));
    }
}

// y = (x - mean) * scale + shift, from the end to the beginning: the end is what the caches still hold.
INLINE void normalised(const float *x, float *y, long count, float mean, float scale, float shift, int stream, long ahead) {
    const V m = all(mean), s = all(scale), t = all(shift);
    long i = count;
    for (; i % 64; i -= 16) put(y + i - 16, mad(_mm512_sub_ps(load(x + i - 16), m), s, t), stream);
    for (; i; i -= 64) {
        UNROLL for (int j = 16; j <= 64; j += 16) {
            if (ahead) fetch(x + i - j - ahead);
            put(y + i - j, mad(_mm512_sub_ps(load(x + i - j), m), s, t), stream);
        }
    }
}

// All threads share each channel, so that less of it, or none, lies beyond their caches when it is read again.
INLINE void batchnorm_shared(void *const *arrays, long channels, long plane, int stream, long ahead) {
    enum { IMAGES = 8, MOST_CHANNELS = 64 };
    const float *x = arrays[0], *g = arrays[1], *b = arrays[2];
    float *y = arrays[3];
    static double found[MOST_CHANNELS][MOST_THREADS][8] ALIGNED; // by thread, a line each
    long first, last, threads = omp_get_num_threads();
    share(IMAGES, &first, &last);
    for (long c = 0; c < channels; c++) {
        float around = x[c * plane];
        double *mine = found[c][omp_get_thread_num()], sums[2] = {0, 0};
        for (long n = first; n < last; n++) moments(x + (n * channels + c) * plane, plane, around, ahead, sums);
        mine[0] = sums[0], mine[1] = sums[1];
#pragma omp barrier
        double s = 0, q = 0, count = (double)IMAGES * plane;
        for (long t = 0; t < threads; t++) s += found[c][t][0], q += found[c][t][1];
        double off = s / count, variance = q / count - off * off;
        float scale = (float)(g[c] / sqrt(variance + 1e-5)), mean = (float)(around + off);
        for (long n = last - 1; n >= first; n--) {
            long at = (n * channels + c) * plane;
            normalised(x + at, y + at, plane, mean, scale, b[c], stream, ahead);
        }
    }
    if (stream) _mm_sfence();
}

// A channel fits the caches: each thread has channels of its own.
INLINE void batchnorm_small(void *const *arrays, int stream, long ahead) {
    enum { IMAGES = 8, CHANNELS = 64, PLANE = 300 * 300 };
    const float *x = arrays[0], *g = arrays[1], *b = arrays[2];
    float *y = arrays[3];
    long c, last;
    share(CHANNELS, &c, &last);
    for (; c < last; c++) {
        float around = x[c * PLANE];
        double sums[2] = {0, 0}, count = (double)IMAGES * PLANE;
        for (long n = 0; n < IMAGES; n++) moments(x + (n * CHANNELS + c) * PLANE, PLANE, around, ahead, sums);
        double off = sums[0] / count, variance = sums[1] / count - off * off;
        float scale = (float)(g[c] / sqrt(variance + 1e-5)), mean = (float)(around + off);
        for (long n = IMAGES - 1; n >= 0; n--) {
            long at = (n * CHANNELS + c) * PLANE;
            normalised(x + at, y + at, PLANE, mean, scale, b[c], stream, ahead);
        }
    }
    if (stream) _mm_sfence();
}

// One channel's values are stored while the next one's moments are taken, so that memory is read and written all
// the time. With shared, of each channel a part of the images; else of all images a part of the channels.
INLINE void batchnorm_flight(void *const *arrays, int shared, int stream, long ahead) {
    enum { IMAGES = 8, CHANNELS = 64, PLANE = 300 * 300, PIECE = 3600 };
    const float *x = arrays[0], *g = arrays[1], *b = arrays[2];
    float *y = arrays[3];
    static double found[CHANNELS][MOST_THREADS][8] ALIGNED;
    long first = 0, last = CHANNELS, from_image = 0, to_image = IMAGES;
    long thread = omp_get_thread_num(), threads = omp_get_num_threads();
    if (shared) share(IMAGES, &from_image, &to_image);
    else share(CHANNELS, &first, &last);
    V mean = zero(), scale = zero(), shift = zero();
    for (long c = first; c <= last; c++) {
        const float around = x[(c < last ? c : first) * PLANE];
        const V a = all(around);
        double sums[2] = {0, 0};
        for (long n = from_image; n < to_image; n++) {
            const float *next = x + (n * CHANNELS + c) * PLANE, *now = next - PLANE;
            float *to = y + (n * CHANNELS + c - 1) * PLANE;
            for (long piece = 0; piece < PLANE; piece += PIECE) {
                V s[5], q[5];
                UNROLL for (int j = 0; j < 5; j++) s[j] = q[j] = zero();
                for (long i = piece; i < piece + PIECE; i += 80) {
                    UNROLL for (int j = 0; j < 5; j++) {
                        long at = i + 16 * j;
                        if (c < last) {
                            if (ahead) fetch(next + at + ahead);
                            V d = sub(load(next + at), a);
                            s[j] = add(s[j], d);
                            q[j] = mad(d, d, q[j]);
                        }
                        if (c > first) {
                            if (ahead) fetch(now + at + ahead);
                            put(to + at, mad(sub(load(now + at), mean), scale, shift), stream);
                        }
                    }
                }
                sums[0] += _mm512_reduce_add_ps(add(folded(s, 0), s[4]));
                sums[1] += _mm512_reduce_add_ps(add(folded(q, 0), q[4]));
            }
        }
        if (c == last) break;
        if (shared) {
            found[c][thread][0] = sums[0], found[c][thread][1] = sums[1];
#pragma omp barrier
            sums[0] = sums[1] = 0;
            for (long t = 0; t < threads; t++) sums[0] += found[c][t][0], sums[1] += found[c][t][1];
        }
        double off = sums[0] / (IMAGES * PLANE), variance = sums[1] / (IMAGES * PLANE) - off * off;
        mean = all((float)(around + off));
        scale = all((float)(g[c] / sqrt(variance + 1e-5)));
        shift = all(b[c]);
    }
    if (stream) _mm_sfence();
}

#ifdef HAND_BATCHNORM_SMALL
void hand_batchnorm_small_flight(void *const *arrays) TEAM(batchnorm_flight(arrays, 0, 1, 0))
void hand_batchnorm_small_flight_near(void *const *arrays) TEAM(batchnorm_flight(arrays, 0, 1, 512))
void hand_batchnorm_small_flight_shared(void *const *arrays) TEAM(batchnorm_flight(arrays, 1, 1, 0))
void hand_batchnorm_small_flight_shared_near(void *const *arrays) TEAM(batchnorm_flight(arrays, 1, 1, 512))
#endif
#ifdef HAND_BATCHNORM_LARGE
void hand_batchnorm_large(void *const *arrays) TEAM(batchnorm_shared(arrays, 3, 2048L * 2048, 0, 512))
void hand_batchnorm_large_stream(void *const *arrays) TEAM(batchnorm_shared(arrays, 3, 2048L * 2048, 1, 0))
void hand_batchnorm_large_stream_near(void *const *arrays) TEAM(batchnorm_shared(arrays, 3, 2048L * 2048, 1, 512))
void hand_batchnorm_large_stream_far(void *const *arrays) TEAM(batchnorm_shared(arrays, 3, 2048L * 2048, 1, 1024))
#endif
#ifdef HAND_BATCHNORM_SMALL
void hand_batchnorm_small_shared(void *const *arrays) TEAM(batchnorm_shared(arrays, 64, 300L * 300, 0, 512))
void hand_batchnorm_small_shared_stream(void *const *arrays) TEAM(batchnorm_shared(arrays, 64, 300L * 300, 1, 0))
void hand_batchnorm_small_shared_stream_near(void *const *arrays) TEAM(batchnorm_shared(arrays, 64, 300L * 300, 1, 512))
void hand_batchnorm_small_shared_stream_far(void *const *arrays) TEAM(batchnorm_shared(arrays, 64, 300L * 300, 1, 1024))
void hand_batchnorm_small(void *const *arrays) TEAM(batchnorm_small(arrays, 0, 512))
void hand_batchnorm_small_stream(void *const *arrays) TEAM(batchnorm_small(arrays, 1, 0))
void hand_batchnorm_small_stream_near(void *const *arrays) TEAM(batchnorm_small(arrays, 1, 512))
void hand_batchnorm_small_stream_far(void *const *arrays) TEAM(batchnorm_small(arrays, 1, 1024))
#endif

// ---------------------------------------------------------------------------------------------- contractions

// v becomes its transpose.
INLINE void transpose(V v[16]) {
    V t[16];
    UNROLL for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4) {
        __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
        __m512d c = _mm512_castps_pd(t[i + 2]), d = _mm512_castps_pd(t[i + 3]);
        v[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        v[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        v[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        v[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    // v[4 r + q] holds, in its four parts, the columns q, 4 + q, 8 + q, 12 + q of the rows 4 r to 4 r + 3.
    UNROLL for (int q = 0; q < 4; q++) {
        t[q] = _mm512_shuffle_f32x4(v[q], v[4 + q], 0x88);
        t[4 + q] = _mm512_shuffle_f32x4(v[q], v[4 + q], 0xdd);
        t[8 + q] = _mm512_shuffle_f32x4(v[8 + q], v[12 + q], 0x88);
        t[12 + q] = _mm512_shuffle_f32x4(v[8 + q], v[12 + q], 0xdd);
    }
    UNROLL for (int q = 0; q < 4; q++) {
        v[q] = _mm512_shuffle_f32x4(t[q], t[8 + q], 0x88);
        v[4 + q] = _mm512_shuffle_f32x4(t[4 + q], t[12 + q], 0x88);
        v[8 + q] = _mm512_shuffle_f32x4(t[q], t[8 + q], 0xdd);
        v[12 + q] = _mm512_shuffle_f32x4(t[4 + q], t[12 + q], 0xdd);
    }
}

// c[768, 1024] = a[768, 1024] b[1024, 1024]. Tiles of 6 rows and 64 columns, each over the whole depth, so
// that c is written once. A panel of b is packed by its first tile, which has time to store it.
enum { MATMUL_M = 768, MATMUL_N = 1024, MATMUL_K = 1024 };

INLINE void matmul_tile(int pack, const float *a, const float *b, float *panel, float *c, int stream) {
    V s[6][4];
    UNROLL for (int i = 0; i < 6; i++) UNROLL for (int j = 0; j < 4; j++) s[i][j] = zero();
    for (long block = 0; block < MATMUL_K; block += 16) {
        UNROLL for (int i = 0; i < 6; i++) fetch(a + i * MATMUL_K + 64);
        _Pragma("GCC unroll 2") for (int k = 0; k < 16; k++) {
            V v[4];
            UNROLL for (int j = 0; j < 4; j++) v[j] = load((pack ? b : panel) + 16 * j);
            if (pack) {
                UNROLL for (int j = 0; j < 4; j++) {
                    _mm512_store_ps(panel + 16 * j, v[j]);
                    fetch2(b + 64 * MATMUL_N + 16 * j);
                }
                b += MATMUL_N;
            }
            UNROLL for (int i = 0; i < 6; i++) {
                V x = all(a[i * MATMUL_K + k]);
                UNROLL for (int j = 0; j < 4; j++) s[i][j] = mad(x, v[j], s[i][j]);
            }
            panel += 64;
        }
        a += 16;
    }
    UNROLL for (int i = 0; i < 6; i++) UNROLL for (int j = 0; j < 4; j++) put(c + i * MATMUL_N + 16 * j, s[i][j], stream);
}

#define MATMUL_TILE(NAME, PACK, STREAM) \
    APART void NAME(const float *a, const float *b, float *panel, float *c) { matmul_tile(PACK, a, b, panel, c, STREAM); }
MATMUL_TILE(matmul_first, 1, 0)
MATMUL_TILE(matmul_first_stream, 1, 1)
MATMUL_TILE(matmul_next, 0, 0)
MATMUL_TILE(matmul_next_stream, 0, 1)

INLINE void matmul(void *const *arrays, int stream) {
    const float *a = arrays[0], *b = arrays[1];
    float *c = arrays[2];
    float *panel = own();
    long part, last;
    share(MATMUL_N / 64, &part, &last);
    for (; part < last; part++) {
        (stream ? matmul_first_stream : matmul_first)(a, b + 64 * part, panel, c + 64 * part);
        for (long i = 6; i < MATMUL_M; i += 6) {
            (stream ? matmul_next_stream : matmul_next)(a + i * MATMUL_K, 0, panel, c + i * MATMUL_N + 64 * part);
        }
    }
    if (stream) _mm_sfence();
}

#ifdef HAND_MATMUL
void hand_matmul(void *const *arrays) TEAM(matmul(arrays, 0))
void hand_matmul_stream(void *const *arrays) TEAM(matmul(arrays, 1))
#endif

// c[192, 256, 256] = a[192, 256, 128] b[192, 128, 256]. Tiles of 14 or 13 rows and 32 columns; while they
// are computed the next a and b come to L2, a few lines a tile.
enum { BMM = 192, BMM_M = 256, BMM_N = 256, BMM_K = 128 }; // 256 = 9 * 14 + 10 * 13

INLINE void bmm_tile(int rows, int pack, const float *a, const float *b, float *panel, float *c, const float *next, int stream) {
    V s[14][2];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 2; j++) s[i][j] = zero();
    const float *below = a + rows * BMM_K; // the next tile's rows, to L1
    for (long block = 0; block < BMM_K; block += 4) {
        if (next) fetch2(next), next += 16;
        for (int k = 0; k < 4; k++) {
            V v[2];
            UNROLL for (int j = 0; j < 2; j++) v[j] = load((pack ? b : panel) + 16 * j);
            if (pack) {
                UNROLL for (int j = 0; j < 2; j++) _mm512_store_ps(panel + 16 * j, v[j]);
                b += BMM_N;
            }
            fetch(below), below += 16;
            UNROLL for (int i = 0; i < rows; i++) {
                V x = all(a[i * BMM_K + k]);
                UNROLL for (int j = 0; j < 2; j++) s[i][j] = mad(x, v[j], s[i][j]);
            }
            panel += 32;
        }
        a += 4;
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 2; j++) put(c + i * BMM_N + 16 * j, s[i][j], stream);
}

#define BMM_TILE(NAME, ROWS, PACK, STREAM) \
    APART void NAME(const float *a, const float *b, float *panel, float *c, const float *next) { \
        bmm_tile(ROWS, PACK, a, b, panel, c, next, STREAM); \
    }
BMM_TILE(bmm_first, 14, 1, 0)
BMM_TILE(bmm_first_stream, 14, 1, 1)
BMM_TILE(bmm_14, 14, 0, 0)
BMM_TILE(bmm_14_stream, 14, 0, 1)
BMM_TILE(bmm_13, 13, 0, 0)
BMM_TILE(bmm_13_stream, 13, 0, 1)

INLINE void bmm(void *const *arrays, int stream) {
    float *panel = own();
    long n, last;
    share(BMM, &n, &last);
    for (; n < last; n++) {
        const float *a = (const float *)arrays[0] + n * BMM_M * BMM_K;
        const float *b = (const float *)arrays[1] + n * BMM_K * BMM_N;
        float *c = (float *)arrays[2] + n * BMM_M * BMM_N;
        const float *next_a = a + BMM_M * BMM_K, *next_b = b + BMM_K * BMM_N;
        for (long part = 0, tile = 0; part < BMM_N; part += 32) {
            for (long i = 0; i < BMM_M; tile++) {
                const float *next = tile < 64 ? next_a + 512 * tile : tile < 128 ? next_b + 512 * (tile - 64) : 0;
                const float *rows = a + i * BMM_K;
                float *to = c + i * BMM_N + part;
                if (!i) (stream ? bmm_first_stream : bmm_first)(rows, b + part, panel, to, next), i += 14;
                else if (i < 9 * 14) (stream ? bmm_14_stream : bmm_14)(rows, 0, panel, to, next), i += 14;
                else (stream ? bmm_13_stream : bmm_13)(rows, 0, panel, to, next), i += 13;
            }
        }
    }
    if (stream) _mm_sfence();
}

#ifdef HAND_BMM
void hand_bmm(void *const *arrays) TEAM(bmm(arrays, 0))
void hand_bmm_stream(void *const *arrays) TEAM(bmm(arrays, 1))
#endif

// y[256, 448] = silu(x w) * (x v), x[256, 4096]. Tiles of 14 or 13 rows, 16 columns of x w and the same 16 of
// x v, each over the whole depth. Rows of x lie 16 KiB apart, where 14 of them fight for one set of L1: x is
// packed by tiles. A panel holds, for each k, 16 columns of w and of v.
enum { SWIGLU_M = 256, SWIGLU_K = 4096, SWIGLU_N = 448, SWIGLU_PANEL = SWIGLU_K * 32 };


// The columns k to k + 15 of a tile's rows, by columns.
INLINE void swiglu_pack_tile(const float *x, int rows, float *to, long k) {
    V v[16];
    UNROLL for (int i = 0; i < 16; i++) v[i] = i < rows ? load(x + i * SWIGLU_K + k) : zero();
    UNROLL for (int i = 0; i < rows; i++) fetch(x + i * SWIGLU_K + k + 64);
    transpose(v);
    UNROLL for (int i = 0; i < 16; i++) _mm512_mask_storeu_ps(to + (k + i) * rows, (1 << rows) - 1, v[i]);
}

// next_w, next_v: where the next panel's weights lie, step floats between two k. A sixteenth of them comes to L2.
INLINE void swiglu_tile(int rows, int pack, const float *x, const float *w, const float *v, float *panel, float *y, const float *next_w, const float *next_v, long step) {
    V a[14], b[14];
    UNROLL for (int i = 0; i < rows; i++) a[i] = b[i] = zero();
    for (long block = 0; block < SWIGLU_K; block += 16) {
        if (!pack) {
            fetch2(next_w), next_w += step;
            fetch2(next_v), next_v += step;
        }
        _Pragma("GCC unroll 2") for (long k = 0; k < 16; k++) {
            V p = load(pack ? w : panel), q = load(pack ? v : panel + 16);
            fetch(x + rows * 64);
            if (pack) {
                _mm512_store_ps(panel, p);
                _mm512_store_ps(panel + 16, q);
                fetch2(w + 32 * SWIGLU_N);
                fetch2(v + 32 * SWIGLU_N);
                w += SWIGLU_N;
                v += SWIGLU_N;
            }
            UNROLL for (int i = 0; i < rows; i++) {
                V s = all(x[i]);
                a[i] = mad(s, p, a[i]);
                b[i] = mad(s, q, b[i]);
            }
            x += rows;
            panel += 32;
        }
    }
    UNROLL for (int i = 0; i < rows; i++) _mm512_storeu_ps(y + i * SWIGLU_N, a[i]), a[i] = b[i];
    UNROLL for (int i = 0; i < rows; i++) {
        V t = load(y + i * SWIGLU_N), e = exponential(_mm512_sub_ps(zero(), t));
        t = _mm512_div_ps(t, _mm512_add_ps(all(1.0f), e));
        _mm512_storeu_ps(y + i * SWIGLU_N, _mm512_mul_ps(t, a[i]));
    }
}

#define SWIGLU_TILE(NAME, ROWS, PACK) \
    APART void NAME(const float *x, const float *w, const float *v, float *panel, float *y, const float *next_w, const float *next_v, long step) { \
        swiglu_tile(ROWS, PACK, x, w, v, panel, y, next_w, next_v, step); \
    }
SWIGLU_TILE(swiglu_first, 14, 1)
SWIGLU_TILE(swiglu_14, 14, 0)
SWIGLU_TILE(swiglu_13, 13, 0)

INLINE void swiglu(void *const *arrays, const float *packed) {
    const float *x = arrays[0], *w = arrays[1], *v = arrays[2];
    float *y = arrays[3], *tiles = common();
    long part, last;
    share(SWIGLU_K / 16, &part, &last);
    for (long i = 0; i < SWIGLU_M; i += i < 9 * 14 ? 14 : 13) {
        const float *rows = x + i * SWIGLU_K;
        float *to = tiles + i * SWIGLU_K;
        for (long k = part * 16; k < last * 16; k += 16) {
            if (i < 9 * 14) swiglu_pack_tile(rows, 14, to, k);
            else swiglu_pack_tile(rows, 13, to, k);
        }
    }
#pragma omp barrier
    share(SWIGLU_N / 16, &part, &last);
    for (; part < last; part++) {
        float *panel = packed ? (float *)packed + part * SWIGLU_PANEL : own();
        const float *from_w = w + part * 16, *from_v = v + part * 16;
        long tile = 0, step = packed ? 32 : SWIGLU_N;
        const float *next_w = packed ? panel + SWIGLU_PANEL : from_w + 16;
        const float *next_v = packed ? next_w + 16 : from_v + 16;
        for (long i = 0; i < SWIGLU_M; i += i < 9 * 14 ? 14 : 13, tile++) {
            const float *rows = tiles + i * SWIGLU_K;
            float *to = y + i * SWIGLU_N + part * 16;
            long skip = (tile + 15) % 16 * (SWIGLU_K / 16) * step;
            if (!i && !packed) swiglu_first(rows, from_w, from_v, panel, to, next_w, next_v, step);
            else if (i < 9 * 14) swiglu_14(rows, 0, 0, panel, to, next_w + skip, next_v + skip, step);
            else swiglu_13(rows, 0, 0, panel, to, next_w + skip, next_v + skip, step);
        }
    }
}

#ifdef HAND_SWIGLU
void hand_swiglu(void *const *arrays) TEAM(swiglu(arrays, 0))
void hand_swiglu_packed(void *const *arrays, const float *packed) TEAM(swiglu(arrays, packed))

void hand_swiglu_pack(void *const *arrays, float *to) {
    const float *w = arrays[1], *v = arrays[2];
    for (long part = 0; part < SWIGLU_N; part += 16) {
        for (long k = 0; k < SWIGLU_K; k++, to += 32) {
            put(to, load(w + k * SWIGLU_N + part), 0);
            put(to + 16, load(v + k * SWIGLU_N + part), 0);
        }
    }
}
#endif

// ---------------------------------------------------------------------------------------------- convolutions

// y[8, 10, 508, 508] = x[8, 3, 512, 512] * w[10, 3, 5, 5]. Tiles of 10 channels and 32 points of a plane taken
// as one row of 508 * 508 points, which are whole lines: stores are aligned, and may pass the caches by. A
// tile that runs over the end of a row of y takes its other points from 4 further in x.
enum { C5_IMAGES = 8, C5_IN = 3, C5_OUT = 10, C5_SIZE = 512, C5_TO = 508, C5_W = 5 };

INLINE void c5_tile(int wide, int turns, const float *x, const float *w, float *y, const __mmask16 after[2], int stream) {
    V s[C5_OUT][2];
    UNROLL for (int o = 0; o < C5_OUT; o++) UNROLL for (int j = 0; j < wide; j++) s[o][j] = zero();
    for (int c = 0; c < C5_IN; c++) {
        const float *plane = x + c * C5_SIZE * C5_SIZE;
        UNROLL for (int j = 0; j < wide; j++) fetch(plane + 7 * C5_SIZE + 16 * j);
        for (int h = 0; h < C5_W; h++) {
            UNROLL for (int k = 0; k < C5_W; k++) {
                V v[2];
                UNROLL for (int j = 0; j < wide; j++) {
                    v[j] = load(plane + k + 16 * j);
                    if (turns) v[j] = _mm512_mask_loadu_ps(v[j], after[j], plane + k + 16 * j + C5_SIZE - C5_TO);
                }
                UNROLL for (int o = 0; o < C5_OUT; o++) {
                    V f = all(w[o]);
                    UNROLL for (int j = 0; j < wide; j++) s[o][j] = mad(f, v[j], s[o][j]);
                }
                w += C5_OUT;
            }
            plane += C5_SIZE;
        }
    }
    UNROLL for (int o = 0; o < C5_OUT; o++) UNROLL for (int j = 0; j < wide; j++) put(y + o * C5_TO * C5_TO + 16 * j, s[o][j], stream);
}

#define C5_TILE(NAME, WIDE, TURNS, STREAM) \
    APART void NAME(const float *x, const float *w, float *y, const __mmask16 *after) { \
        c5_tile(WIDE, TURNS, x, w, y, after, STREAM); \
    }
C5_TILE(c5_within, 2, 0, 0)
C5_TILE(c5_within_stream, 2, 0, 1)
C5_TILE(c5_turn, 2, 1, 0)
C5_TILE(c5_turn_stream, 2, 1, 1)
C5_TILE(c5_end, 1, 1, 0)
C5_TILE(c5_end_stream, 1, 1, 1)

// The lanes of the vector that begins in the column q of y and lie in its next row.
INLINE __mmask16 c5_after(long q) {
    return q >= C5_TO ? 0xffff : q > C5_TO - 16 ? (__mmask16)(0xffff << (C5_TO - q)) : 0;
}

INLINE void c5(void *const *arrays, int stream) {
    enum { PLANE = C5_TO * C5_TO, WEIGHTS = C5_IN * C5_W * C5_W };
    const float *x = arrays[0], *weights = arrays[1];
    float *y = arrays[2];
    float w[WEIGHTS * C5_OUT] ALIGNED;
    for (int o = 0; o < C5_OUT; o++) {
        for (int i = 0; i < WEIGHTS; i++) w[i * C5_OUT + o] = weights[o * WEIGHTS + i];
    }
    long n, last;
    share(C5_IMAGES, &n, &last);
    for (; n < last; n++) {
        const float *from = x + n * C5_IN * C5_SIZE * C5_SIZE;
        float *to = y + n * C5_OUT * PLANE;
        for (long p = 0, q = 0, r = 0; p < PLANE; p += 32) {
            const float *at = from + r * C5_SIZE + q;
            const __mmask16 after[2] = {c5_after(q), c5_after(q + 16)};
            if (p + 32 > PLANE) (stream ? c5_end_stream : c5_end)(at, w, to + p, after);
            else if (q + 32 <= C5_TO) (stream ? c5_within_stream : c5_within)(at, w, to + p, after);
            else (stream ? c5_turn_stream : c5_turn)(at, w, to + p, after);
            q += 32;
            if (q >= C5_TO) q -= C5_TO, r++;
        }
    }
    if (stream) _mm_sfence();
}

#ifdef HAND_CONV_5
void hand_conv_5(void *const *arrays) TEAM(c5(arrays, 0))
void hand_conv_5_stream(void *const *arrays) TEAM(c5(arrays, 1))
#endif

// y[8, 64, 54, 54] = x[8, 64, 56, 56] * w[64, 64, 3, 3], directly: tiles of 14 or 13 points of a row and 32
// channels, as a product of x's points, each the same for all channels, and w packed as [2][64, 3, 3][32].
enum { C3_IMAGES = 8, C3 = 64, C3_SIZE = 56, C3_TO = 54, C3_PLANE = C3_SIZE * C3_SIZE, C3_TO_PLANE = C3_TO * C3_TO };

// The blocks i to last, of 36, of 16 (c, h, k) each.
INLINE void c3_pack(const float *w, float *to, long i, long last) {
    for (; i < last; i++) {
        for (int o = 0; o < C3; o += 16) {
            V v[16];
            UNROLL for (int j = 0; j < 16; j++) v[j] = load(w + (o + j) * C3 * 9 + i * 16);
            transpose(v);
            UNROLL for (int j = 0; j < 16; j++) put(to + (o / 32 * C3 * 9 + i * 16 + j) * 32 + o % 32, v[j], 0);
        }
    }
}

INLINE void c3_tile(int points, const float *x, const float *w, float *y, int ahead) {
    V s[2][16];
    UNROLL for (int j = 0; j < 2; j++) UNROLL for (int i = 0; i < points; i++) s[j][i] = zero();
    for (int c = 0; c < C3; c++) {
        if (ahead) fetch2(x + 3 * C3_SIZE);
        for (int h = 0; h < 3; h++) {
            fetch(x + 2 * C3_PLANE + h * C3_SIZE);
            fetch(x + 2 * C3_PLANE + h * C3_SIZE + 15);
            for (int k = 0; k < 3; k++) {
                fetch(w + 16 * 32);
                fetch(w + 16 * 32 + 16);
                V p = load(w), q = load(w + 16);
                UNROLL for (int i = 0; i < points; i++) {
                    V v = all(x[h * C3_SIZE + k + i]);
                    s[0][i] = mad(v, p, s[0][i]);
                    s[1][i] = mad(v, q, s[1][i]);
                }
                w += 32;
            }
        }
        x += C3_PLANE;
    }
    float held[2][16][16] ALIGNED; // 28 vectors and what a transpose needs are more than the registers
    UNROLL for (int j = 0; j < 2; j++) UNROLL for (int i = 0; i < points; i++) _mm512_store_ps(held[j][i], s[j][i]);
    for (int j = 0; j < 2; j++) {
        V t[16];
        UNROLL for (int i = 0; i < 16; i++) t[i] = i < points ? load(held[j][i]) : zero();
        transpose(t);
        UNROLL for (int i = 0; i < 16; i++) _mm512_mask_storeu_ps(y + (16 * j + i) * C3_TO_PLANE, (1 << points) - 1, t[i]);
    }
}

APART void c3_14(const float *x, const float *w, float *y, int ahead) { c3_tile(14, x, w, y, ahead); }
APART void c3_13(const float *x, const float *w, float *y, int ahead) { c3_tile(13, x, w, y, ahead); }

INLINE void c3(void *const *arrays, const float *packed) {
    const float *x = arrays[0];
    float *y = arrays[2];
    float *weights = common();
    long n, last;
    if (!packed) {
        share(C3 * 9 / 16, &n, &last);
        c3_pack(arrays[1], weights, n, last);
#pragma omp barrier
    }
    share(C3_IMAGES, &n, &last);
    for (; n < last; n++) {
        for (int h = 0; h < C3_TO; h++) {
            const float *from = x + n * C3 * C3_PLANE + h * C3_SIZE;
            float *to = y + n * C3 * C3_TO_PLANE + h * C3_TO;
            for (int half = 0; half < 2; half++) {
                const float *w = (packed ? packed : weights) + half * C3 * 9 * 32;
                float *channels = to + half * 32 * C3_TO_PLANE;
                c3_14(from, w, channels, !half);
                c3_13(from + 14, w, channels + 14, !half);
                c3_14(from + 27, w, channels + 27, !half);
                c3_13(from + 41, w, channels + 41, !half);
            }
        }
    }
}

#ifdef HAND_CONV_3
void hand_conv_3(void *const *arrays) TEAM(c3(arrays, 0))
void hand_conv_3_packed(void *const *arrays, const float *packed) TEAM(c3(arrays, packed))
void hand_conv_3_pack(void *const *arrays, float *to) { c3_pack(arrays[1], to, 0, C3 * 9 / 16); }
#endif
