/* Links with an exported library and nothing else: results, statuses, levels, two threads at once, forks. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kept.h"

enum { ROWS = 64, COLUMNS = 64 };
static float x[ROWS * COLUMNS], y[2][ROWS * COLUMNS], expected[ROWS * COLUMNS];
static float values[6 * 32], halves[6 * 32];
static int32_t counted[6 * 32], counts[6];

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            printf("%s: line %d: %s\n", kept_level(), __LINE__, #condition);                                       \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

static void *calls(void *result) {
    for (int i = 0; i < 50; ++i)
        CHECK(kept_softmax_64x64(x, result, NULL) == KEPT_OK);
    return NULL;
}

static void softmax(void) {
    memset(y, 0xff, sizeof y);
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i)
        CHECK(pthread_create(&threads[i], NULL, calls, y[i]) == 0);
    for (int i = 0; i < 2; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        CHECK(fabsf(y[0][i] - expected[i]) <= 1e-6f);
        CHECK(y[1][i] == y[0][i]);
    }
}

static void pair(void) {
    _Alignas(64) static char workspace[KEPT_PAIR_WORKSPACE + 64];
    CHECK(KEPT_PAIR_WORKSPACE == 6 * 32 * 4);
    for (int i = 0; i < 2; ++i) {
        memset(halves, 0xff, sizeof halves);
        memset(counts, 0xff, sizeof counts);
        CHECK(kept_pair(values, counted, halves, counts, i ? workspace : NULL) == KEPT_OK);
        for (int k = 0; k < 6 * 32; ++k)
            CHECK(fabsf(halves[k] - expf(values[k]) / 2) <= 1e-5f * halves[k]);
        for (int k = 0; k < 6; ++k)
            CHECK(counts[k] == 32 * k);
    }
    CHECK(kept_pair(NULL, counted, halves, counts, NULL) == KEPT_NULL);
    CHECK(kept_pair((float *)((char *)values + 1), counted, halves, counts, NULL) == KEPT_ALIGNMENT);
    CHECK(kept_pair(values, counted, halves, counts, workspace + 4) == KEPT_ALIGNMENT);
    CHECK(kept_pair(values, counted, values + 8, counts, NULL) == KEPT_OVERLAP);
    CHECK(kept_pair((float *)workspace, counted, halves, counts, workspace) == KEPT_OVERLAP);
    CHECK(strstr(kept_message(KEPT_OVERLAP), "overlaps") != NULL);
}

/* What indices are made of is looked at before anything is read through them. */
static void rows(void) {
    static float table[5 * 8], scale[4] = {0, 0.5f, 1, 0.25f}, picked[4 * 8];
    int64_t k[4] = {2, 6, 3, 4};
    for (int i = 0; i < 5 * 8; ++i) table[i] = (float)i;
    CHECK(kept_rows(table, k, scale, picked, NULL) == KEPT_OK);
    CHECK(picked[8] == 32 && picked[2 * 8 + 1] == 9 + 9);
    int64_t wrong[] = {1, 7, -1, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 5; ++i) {
        k[3] = wrong[i];
        picked[0] = -1;
        CHECK(kept_rows(table, k, scale, picked, NULL) == KEPT_RANGE);
        CHECK(picked[0] == -1);
    }
    k[3] = 3; /* twice */
    CHECK(kept_rows(table, k, scale, picked, NULL) == KEPT_DISTINCT);
    CHECK(picked[0] == -1 && strstr(kept_message(KEPT_DISTINCT), "one of them twice") != NULL);
    k[3] = 4;
    scale[0] = 1.5f;
    CHECK(kept_rows(table, k, scale, picked, NULL) == KEPT_RANGE);
    scale[0] = NAN; /* which is converted to 0 */
    CHECK(kept_rows(table, k, scale, picked, NULL) == KEPT_OK);
    scale[0] = 0;
    CHECK(kept_rows(table, NULL, scale, picked, NULL) == KEPT_NULL);
    CHECK(strstr(kept_message(KEPT_RANGE), "beyond those that the kernel takes") != NULL);
}

/* After a call a process forks: both sides call again, and so does a child of the child. */
static void forks(int depth) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60); /* it would wait for threads that it does not have */
        softmax();
        CHECK(kept_softmax_64x64(x, y[0], NULL) == KEPT_OK);
        CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
        if (depth) forks(depth - 1);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(kept_softmax_64x64(x, y[0], NULL) == KEPT_OK);
    CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
}

int main(void) {
    for (int i = 0; i < ROWS; ++i) {
        double sum = 0;
        for (int k = 0; k < COLUMNS; ++k) {
            x[i * COLUMNS + k] = (float)((i * 7 + k * 13) % 31) / 4;
            sum += exp(x[i * COLUMNS + k]);
        }
        for (int k = 0; k < COLUMNS; ++k)
            expected[i * COLUMNS + k] = (float)(exp(x[i * COLUMNS + k]) / sum);
    }
    for (int k = 0; k < 6 * 32; ++k) {
        values[k] = (float)(k % 9) - 4;
        counted[k] = k / 32;
    }
    const char *levels[] = {"baseline", "avx2", "avx512", "native"};
    int tried = 0;
    for (int i = 0; i < 4; ++i) {
        if (kept_use_level(levels[i]) != 0) continue;
        CHECK(strcmp(kept_level(), levels[i]) == 0);
        softmax();
        pair();
        rows();
        ++tried;
    }
    CHECK(tried > 0);
    CHECK(kept_use_level("abacus") == -1);
    CHECK(kept_use_level(NULL) == 0);
    CHECK(kept_softmax_64x64(x, y[0], NULL) == KEPT_OK);
    forks(1);
    forks(0);
    printf("%s of %d levels\n", kept_level(), tried);
    return 0;
}
