// Runs CUDA and HIP kernels on the CPU, for correctness and teaching: never a time.
//
// The generated text is compiled as it is, behind this header, which defines the words it uses. Each thread of
// a block is a coroutine that runs to its next barrier or shuffle, in ascending, descending or random order, so
// that what only a barrier makes right goes wrong without it; blocks run one after the other. Shared memory
// holds NaN at the start of each block. A barrier or shuffle that not all of its threads reach is a fault.
// It sees neither races of += nor races between blocks: those are the analysis' to refuse.
#ifdef __APPLE__
#define _XOPEN_SOURCE 700  // or its ucontext.h refuses
#define _DARWIN_C_SOURCE
#endif
// Of gcc's C++ library the headers of C alone: its overloads in C++ take the compiler as long as all the rest, and
// generated text calls each function by its type's own name.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define DOJO_EMULATOR 1
#define __global__ __attribute__((visibility("default")))
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))
#ifdef __APPLE__
#define __shared__ static __attribute__((section("__DATA,dojo_shared")))
#else
#define __shared__ static __attribute__((section("dojo_shared")))
#endif
#define __stcs(place, value) dojo::stream(place, value, __LINE__)
#define __ldcs(place) dojo::streamed(place, __LINE__)
#define __syncthreads() dojo::wait(dojo::BLOCK, __LINE__)
#define __syncwarp() dojo::wait(dojo::WARP, __LINE__)
#define __shfl_xor_sync(mask, value, lanes) dojo::shuffle(value, lanes, __LINE__)
#define __shfl_xor(value, lanes) dojo::shuffle(value, lanes, __LINE__)

#define mma_tf32(...) dojo::multiply(__VA_ARGS__, __LINE__)

struct dojo_index { unsigned x; };
static dojo_index threadIdx, blockIdx;
struct __align__(16) float4 { float x, y, z, w; };
struct __align__(8) float2 { float x, y; };
struct __align__(16) double2 { double x, y; };
struct __align__(16) int4 { int x, y, z, w; };
struct __align__(8) int2 { int x, y; };
struct __align__(16) longlong2 { long long x, y; };
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }

extern "C" {
__attribute__((visibility("default"))) char dojo_fault[256];  // empty: none
__attribute__((visibility("default"))) int dojo_order = -1;   // 0 ascending, 1 descending, 2 random, -1 by turns
#ifdef __APPLE__  // whose linker knows a section's ends by these names
extern char __start_dojo_shared[] __asm("section$start$__DATA$dojo_shared");
extern char __stop_dojo_shared[] __asm("section$end$__DATA$dojo_shared");
#else
extern char __start_dojo_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_dojo_shared[] __attribute__((weak, visibility("hidden")));
#endif
}

namespace dojo {

enum State { READY, BLOCK, WARP, SHUFFLE, DONE };
const int MOST = 1024;                // threads of a block
const size_t STACK = 256 * 1024;      // of a thread; pages are taken when touched

struct Thread {
    State state;
    int line;      // of the barrier or shuffle that it waits at
    int parity;    // which of its two shuffle values is the last
    bool begun;
    jmp_buf at;
    ucontext_t context;
};

static Thread threads[MOST];
static unsigned long long values[2][MOST];
static char *stacks;
static jmp_buf scheduler;
static ucontext_t start;
static int current, count, warp;
static unsigned turn, noise = 2463534242u;
static void (*body)(void *);
static void *arguments;

static void fault(const char *form, ...) {
    if (dojo_fault[0]) return;  // the first one counts
    va_list rest;
    va_start(rest, form);
    vsnprintf(dojo_fault, sizeof dojo_fault, form, rest);
    va_end(rest);
}

// Does an address belong to the block's or to the thread's own memory?
static int is_own(const void *place) {
    const char *at = (const char *)place;
    int own = stacks && at >= stacks && at < stacks + MOST * STACK;  // without barriers there are no stacks
    return own || (at >= __start_dojo_shared && at < __stop_dojo_shared);
}

// Accesses to global memory: with another address the instruction would be a fault.
template <class T> static void stream(T *place, T value, int line) {
    if (is_own(place)) fault("Line %d stores past the caches to what is not global memory.", line);
    *place = value;
}

template <class T> static T streamed(const T *place, int line) {
    if (is_own(place)) fault("Line %d loads past the caches from what is not global memory.", line);
    return *place;
}

static void wait(State what, int line) {
    Thread &me = threads[current];
    me.state = what;
    me.line = line;
    if (!_setjmp(me.at)) _longjmp(scheduler, 1);
}

template <class T> static T shuffle(T value, int mask, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    Thread &me = threads[current];
    int self = current, other = self / warp * warp + (self % warp ^ mask);
    int parity = me.parity ^= 1;
    values[parity][self] = 0;
    memcpy(&values[parity][self], &value, sizeof value);
    wait(SHUFFLE, line);
    if (other >= count) {
        fault("Thread %d shuffles with thread %d, which the block does not have.", self, other);
        return value;
    }
    memcpy(&value, &values[parity][other], sizeof value);
    return value;
}

// What mma.sync.m16n8k8 adds to a tile of 16 x 8 results, four a lane: the bits that TF32 has not are cut off, and a
// product of two such numbers is exact.
static void multiply(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1, int line) {
    static float brought[2][MOST][6];
    Thread &me = threads[current];
    int self = current, first = self / 32 * 32, row = self % 32 / 4, column = self % 4 * 2;
    int parity = me.parity ^= 1;
    float own[6] = {a0, a1, a2, a3, b0, b1};
    for (int k = 0; k < 6; ++k) {
        unsigned bits;
        memcpy(&bits, &own[k], sizeof bits);
        bits &= 0xffffe000;
        memcpy(&brought[parity][self][k], &bits, sizeof bits);
    }
    wait(SHUFFLE, line);
    if (first + 32 > count) return fault("Thread %d multiplies with a warp that is not whole.", self);
    for (int cell = 0; cell < 4; ++cell) {
        double sum = d[cell];
        for (int term = 0; term < 8; ++term) {
            int left = first + row * 4 + term % 4, right = first + (column + cell % 2) * 4 + term % 4;
            sum += (double)brought[parity][left][cell / 2 + term / 4 * 2] * brought[parity][right][4 + term / 4];
        }
        d[cell] = (float)sum;
    }
}

static void entry() {
    body(arguments);
    threads[current].state = DONE;
    _longjmp(scheduler, 1);
}

static void resume(int number) {
    current = number;
    threadIdx.x = number;
    Thread &me = threads[number];
    if (_setjmp(scheduler)) return;
    if (me.begun) _longjmp(me.at, 1);
    me.begun = true;
    getcontext(&me.context);
    me.context.uc_stack.ss_sp = stacks + STACK * number;
    me.context.uc_stack.ss_size = STACK;
    me.context.uc_link = nullptr;
    makecontext(&me.context, entry, 0);
    swapcontext(&start, &me.context);
}

static const int *ordered(int n, unsigned way) {
    static int numbers[MOST];
    for (int k = 0; k < n; ++k) numbers[k] = way == 1 ? n - 1 - k : k;
    if (way == 2)
        for (int k = n - 1; k > 0; --k) {
            noise ^= noise << 13, noise ^= noise >> 17, noise ^= noise << 5;
            int other = noise % (k + 1), kept = numbers[k];
            numbers[k] = numbers[other], numbers[other] = kept;
        }
    return numbers;
}

// Lets those go on that wait together: a warp, the first by the order, so that it runs ahead of the others as far as
// barriers let it; or the whole block. False: nobody can.
static bool release(unsigned way) {
    const int warps = (count + warp - 1) / warp, *order = ordered(warps, way);
    for (int k = 0; k < warps; ++k) {
        int first = order[k] * warp, last = first + warp < count ? first + warp : count;
        Thread &one = threads[first];
        bool alike = one.state == WARP || one.state == SHUFFLE;
        for (int k = first; k < last; ++k) alike &= threads[k].state == one.state && threads[k].line == one.line;
        if (!alike) continue;
        for (int k = first; k < last; ++k) threads[k].state = READY;
        return true;
    }
    for (int k = 0; k < count; ++k)
        if (threads[k].state != BLOCK || threads[k].line != threads[0].line) return false;
    for (int k = 0; k < count; ++k) threads[k].state = READY;
    return true;
}

static void block_with_barriers(unsigned way) {
    for (int k = 0; k < count; ++k) threads[k].state = READY, threads[k].begun = false, threads[k].parity = 0;
    for (;;) {
        const int *order = ordered(count, way);
        int done = 0;
        for (int k = 0; k < count; ++k) {
            if (threads[order[k]].state == READY) resume(order[k]);
        }
        for (int k = 0; k < count; ++k) done += threads[k].state == DONE;
        if (done == count) return;
        if (!release(way)) {
            for (int k = 0; k < count; ++k)
                if (threads[k].state != DONE)
                    return fault("Thread %d of block %u waits at a barrier that others never reach.", k, blockIdx.x);
        }
    }
}

static void launch(unsigned blocks, int size, int lanes, bool barriers, void (*kernel)(void *), void *given) {
    body = kernel, arguments = given, count = size, warp = lanes;
    if (!stacks && barriers) {
        void *made = mmap(nullptr, STACK * MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return fault("There is no memory for the threads' stacks.");
        stacks = (char *)made;
    }
    for (unsigned block = 0; block < blocks && !dojo_fault[0]; ++block) {
        unsigned way = dojo_order < 0 ? (turn + block) % 3 : dojo_order;
        blockIdx.x = block;
        if (__start_dojo_shared) memset(__start_dojo_shared, 0xff, __stop_dojo_shared - __start_dojo_shared);
        if (barriers) {
            block_with_barriers(way);
            continue;
        }
        const int *order = ordered(size, way);
        for (int k = 0; k < size; ++k) {
            threadIdx.x = order[k];
            kernel(given);
        }
    }
}

}  // namespace dojo

