/* What a fuzz target reads its input with, and how it says that something is wrong. */
#ifndef GOPHER_FUZZ_INPUT_H
#define GOPHER_FUZZ_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Bytes that are left; past the end come zeros. */
typedef struct {
    const uint8_t *at, *end;
} input;

static inline bool input_has(const input *in) { return in->at < in->end; }

static inline uint8_t input_byte(input *in) { return input_has(in) ? *in->at++ : 0; }

static inline uint64_t input_number(input *in, int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number = number << 8 | input_byte(in);
    return number;
}

#endif
