/* The vendor's functions: found by name in a library that is opened at run time. */
#include "internal.h"

#include <stdio.h>

#if !defined(_WIN32)
#include <dlfcn.h>
#endif

#define REQUIRED true
#undef OPTIONAL /* Windows' headers have one of their own */
#define OPTIONAL false
static const gb_symbol symbols[] = {
#define X(field, symbol, since, need, type) {symbol, since, need},
#include "api_table.h"
#undef X
};
#define SYMBOL_COUNT (sizeof symbols / sizeof *symbols)

/* Where the table's functions lie in a gb_api, in the table's order. */
static const size_t offsets[] = {
#define X(field, symbol, since, need, type) offsetof(struct gb_api, field),
#include "api_table.h"
#undef X
};
#undef REQUIRED
#undef OPTIONAL

/* A function's address, as dlsym gives it, lives in a field of a function type: the same bits (POSIX says so). */
_Static_assert(sizeof(void *) == sizeof(gopher_orch_free_fn *), "function pointers are as wide as object pointers");

static struct gb_api *opened; /* every library that was opened, under gb_lock; never closed */

static void say(char *error, size_t size, const char *text) {
    if (error && size)
        snprintf(error, size, "%s", text);
}

/* ---- the system's loader ------------------------------------------------------------------------------------ */

#if defined(_WIN32)
static void *loader_open(const char *path, bool global, char *error, size_t size) {
    (void)global; /* every module's exports are its own here */
    wchar_t wide[32768];
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, 32768)) {
        say(error, size, "the path is not valid UTF-8 or too long");
        return NULL;
    }
    /* Its own folder, os.add_dll_directory()'s and the system's; then, as it always was, those in PATH. */
    bool absolute = strchr(path, '\\') || strchr(path, '/');
    DWORD usual = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | (absolute ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0);
    HMODULE module = LoadLibraryExW(wide, NULL, usual);
    if (!module && (GetLastError() == ERROR_MOD_NOT_FOUND || GetLastError() == ERROR_INVALID_PARAMETER))
        module = LoadLibraryExW(wide, NULL, absolute ? LOAD_WITH_ALTERED_SEARCH_PATH : 0);
    if (!module && error && size) {
        DWORD code = GetLastError();
        DWORD written = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, code, 0, error,
                                       (DWORD)size, NULL);
        while (written && (error[written - 1] == '\n' || error[written - 1] == '\r'))
            error[--written] = '\0';
        if (!written)
            snprintf(error, size, "LoadLibrary failed with error %lu", (unsigned long)code);
    }
    return (void *)module;
}
static void *loader_find(void *library, const char *name) {
    FARPROC found = GetProcAddress((HMODULE)library, name);
    void *address;
    memcpy(&address, &found, sizeof address);
    return address;
}
static void loader_close(void *library) { FreeLibrary((HMODULE)library); }
#else
static void *loader_open(const char *path, bool global, char *error, size_t size) {
    void *library = dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!library) {
        const char *reason = dlerror();
        say(error, size, reason ? reason : "the loader gave no reason");
    }
    return library;
}
static void *loader_find(void *library, const char *name) { return dlsym(library, name); }
static void loader_close(void *library) { dlclose(library); }
#endif

/* ---- the table ---------------------------------------------------------------------------------------------- */

static void *function_at(const gb_api *api, size_t index) {
    void *address;
    memcpy(&address, (const char *)api + offsets[index], sizeof address);
    return address;
}

static void fill(struct gb_api *api) {
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        void *address = loader_find(api->library, symbols[i].name);
        memcpy((char *)api + offsets[i], &address, sizeof address);
    }
}

/* Names the required functions that are missing; false when there are any. */
static bool complete(const gb_api *api, const char *path, char *error, size_t size) {
    size_t used = 0;
    bool whole = true;
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        if (!symbols[i].required || function_at(api, i))
            continue;
        if (error && used < size) {
            int wrote = whole ? snprintf(error, size, "%s is not a usable libgopher-orch: it lacks %s", path,
                                         symbols[i].name)
                              : snprintf(error + used, size - used, ", %s", symbols[i].name);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
        whole = false;
    }
    return whole;
}

/* Under gb_lock: the table that was made for the same library before. */
static struct gb_api *known(void *library) {
    for (struct gb_api *api = opened; api; api = api->next)
        if (api->library == library)
            return api;
    return NULL;
}

static void forget(struct gb_api *api) {
    loader_close(api->library);
    free(api);
}

const gb_api *gb_api_open(const char *path, char *error, size_t size) {
    say(error, size, "");
    if (!path || !*path) {
        say(error, size, "no path was given");
        return NULL;
    }
    struct gb_api *api = gb_alloc_zeroed(sizeof *api);
    if (!api) {
        say(error, size, "out of memory");
        return NULL;
    }
    api->library = loader_open(path, false, error, size);
    if (!api->library) {
        free(api);
        return NULL;
    }
    fill(api);
    if (!complete(api, path, error, size)) {
        forget(api);
        return NULL;
    }
    gb_enter_lock();
    struct gb_api *before = known(api->library);
    if (!before) {
        api->next = opened;
        opened = api;
    }
    gb_leave_lock();
    if (before)
        forget(api); /* the loader counts: the first opening stays */
    return before ? before : api;
}

const gb_symbol *gb_api_symbol(size_t index) { return index < SYMBOL_COUNT ? &symbols[index] : NULL; }

bool gb_api_has(const gb_api *api, const char *name) {
    for (size_t i = 0; api && name && i < SYMBOL_COUNT; i++)
        if (strcmp(symbols[i].name, name) == 0)
            return function_at(api, i) != NULL;
    return false;
}

void gb_api_set_log_level(const gb_api *api, int32_t level) {
    if (api && api->set_log_level)
        api->set_log_level(level);
}

bool gb_preload(const char *path, bool global, char *error, size_t size) {
    say(error, size, "");
    if (!path || !*path) {
        say(error, size, "no path was given");
        return false;
    }
    return loader_open(path, global, error, size) != NULL;
}
