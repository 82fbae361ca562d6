/* Runs a target over files, in place of libFuzzer: with any compiler, and to debug a finding. */
#include "input.h"

static void run(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(path);
        exit(2);
    }
    long size = ftell(file);
    rewind(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1); /* of exactly this size, so that one byte more is seen */
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "%s can't be read\n", path);
        exit(2);
    }
    fclose(file);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++)
        run(arguments[i]);
    printf("%d inputs\n", count - 1);
    return 0;
}
