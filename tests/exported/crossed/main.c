/* crossed KERNEL LEVEL IN OUT: a kernel's output at a level ("best": the one that the library takes by itself) from
 * its inputs, which stand one behind another. Says which level that is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kept.h"

static FILE *in;

static void *space(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (p == NULL) exit(2);
    return memset(p, 255, bytes);
}

static void *given(size_t bytes) {
    void *p = space(bytes);
    if (fread(p, 1, bytes, in) != bytes) exit(3);
    return p;
}

int main(int words, char **word) {
    if (words != 5) return 4;
    in = fopen(word[3], "rb");
    FILE *out = fopen(word[4], "wb");
    if (in == NULL || out == NULL) return 5;
    if (kept_use_level(strcmp(word[2], "best") ? word[2] : NULL) != 0) {
        puts("none");
        return 0;
    }
    int status;
    size_t bytes;
    void *y;
    if (strcmp(word[1], "softmax") == 0) {
        float *x = given(8 * 192 * sizeof *x);
        y = space(bytes = 8 * 192 * sizeof(float));
        status = kept_softmax_8x192(x, y, NULL);
    } else if (strcmp(word[1], "dots") == 0) {
        int8_t *a = given(3 * 8), *w = given(2 * 4 * 4);
        y = space(bytes = 3 * 4 * sizeof(int32_t));
        status = kept_dots(a, w, y, NULL);
    } else {
        uint8_t *a = given(12 * 128);
        int8_t *w = given(128 * 128);
        uint8_t *z = given(1);
        float *s = given(128 * sizeof *s);
        int8_t *p = given(1);
        y = space(bytes = 12 * 128);
        status = kept_qmatmul_12x128x128(a, w, z, s, p, y, NULL);
    }
    if (status != KEPT_OK) return 6;
    puts(kept_level());
    return fwrite(y, 1, bytes, out) != bytes || fclose(out) != 0;
}
