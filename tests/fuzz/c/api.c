/* Libraries with any set of functions, opened in any order and in any state of memory, against the rules of the table:
 * what is missing is named, what is required decides, an opened library is opened once, and a call that needs a function
 * of a later version fails by that function's name and calls nothing else.
 *
 * The system's loader is replaced: a library is 32 bits of the input, one for each function of the table. Opening and the
 * calls are compiled into this file; the calls are made on this thread.
 */
#include <dlfcn.h>

#define dlopen fuzz_dlopen
#define dlsym fuzz_dlsym
#define dlclose fuzz_dlclose
#define dlerror fuzz_dlerror
static void *fuzz_dlopen(const char *path, int flags);
static void *fuzz_dlsym(void *library, const char *name);
static int fuzz_dlclose(void *library);
static char *fuzz_dlerror(void);
#include "../../../csrc/api.c"
#define inherited call_inherited
#include "../../../csrc/calls.c"

#include "input.h"

enum { LIBRARIES = 6, MOST_STEPS = 300 };

/* ---- the libraries ------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t functions; /* bit i: the table's i-th is there */
    int opened;         /* as the loader counts */
    const gb_api *api;  /* what the first opening gave */
} library;

static library libraries[LIBRARIES];
static bool no_memory, loader_is_silent;
static input in;

void *gb_alloc(size_t size) { return no_memory ? NULL : malloc(size); }

/* "/0" to "/5"; whatever else can't be opened. */
static library *library_at(const char *path) {
    return path[0] == '/' && path[1] >= '0' && path[1] < '0' + LIBRARIES && !path[2] ? &libraries[path[1] - '0'] : NULL;
}

static void *fuzz_dlopen(const char *path, int flags) {
    EXPECT((flags & RTLD_NOW) && ((flags & RTLD_GLOBAL) == 0 || path[0] == 'g'));
    library *one = library_at(path);
    if (one)
        one->opened++;
    return one;
}

static int fuzz_dlclose(void *which) {
    library *one = which;
    EXPECT(one->opened > 0);
    one->opened--;
    return 0;
}

static char *fuzz_dlerror(void) {
    static char reason[] = "no such file";
    return loader_is_silent ? NULL : reason;
}

/* ---- their functions ----------------------------------------------------------------------------------------- */

static const char *called; /* the create that was called last */
static char agent_made, options_given;
static const char *const words[] = {"provider", "model", "key", "target"};
static gopher_orch_agent_options_t given;
static int listened, listened_all, released_strings, references, runs, level_set;
static bool answers;
static gopher_orch_error_info_t failure = {.code = -20, .message = "not reached"};

static gopher_orch_agent_t make(const char *name, const char *provider, const char *model, const char *key,
                                const char *target, const gopher_orch_agent_options_t *options) {
    EXPECT(!called && provider == words[0] && model == words[1] && target == words[3] && (!key || key == words[2]));
    EXPECT(!options || options == &given);
    options_given = options != NULL;
    called = name;
    return answers ? &agent_made : NULL;
}

#define PLAIN_ONE(field)                                                                                               \
    static gopher_orch_agent_t field(const char *p, const char *m, const char *t) {                                    \
        return make(#field, p, m, NULL, t, NULL);                                                                      \
    }                                                                                                                  \
    static gopher_orch_agent_t field##_with_options(const char *p, const char *m, const char *t,                       \
                                                    const gopher_orch_agent_options_t *o) {                            \
        return make(#field "_with_options", p, m, NULL, t, o);                                                         \
    }
#define ROUTED_ONE(field)                                                                                              \
    static gopher_orch_agent_t field(const char *p, const char *m, const char *k, const char *t) {                     \
        EXPECT(k);                                                                                                     \
        return make(#field, p, m, k, t, NULL);                                                                         \
    }                                                                                                                  \
    static gopher_orch_agent_t field##_with_options(const char *p, const char *m, const char *k, const char *t,        \
                                                    const gopher_orch_agent_options_t *o) {                            \
        EXPECT(k);                                                                                                     \
        return make(#field "_with_options", p, m, k, t, o);                                                            \
    }
PLAIN_ONE(create_by_json)
PLAIN_ONE(create_by_api_key)
PLAIN_ONE(create_by_url)
ROUTED_ONE(create_by_server_id)
ROUTED_ONE(create_by_server_name)
ROUTED_ONE(create_by_gateway_id)
ROUTED_ONE(create_by_gateway_name)

static char *agent_run(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    EXPECT(agent == &agent_made && query == words[1] && timeout_ms == 7);
    runs++;
    return answers ? strdup("text") : NULL;
}
static void agent_add_ref(gopher_orch_agent_t agent) {
    EXPECT(agent == &agent_made);
    references++;
}
static void agent_release(gopher_orch_agent_t agent) { (void)agent; }
static int32_t agent_set_event_callback(gopher_orch_agent_t agent, int32_t kind, gopher_orch_event_callback_t callback,
                                        void *user_data) {
    EXPECT(agent == &agent_made && callback == gb_event_trampoline && (uintptr_t)user_data == 99);
    EXPECT(kind >= 1 && kind <= 7 && !(listened & 1 << kind));
    listened |= 1 << kind;
    return 0;
}
static int32_t agent_set_event_callback_all(gopher_orch_agent_t agent, gopher_orch_event_callback_t callback,
                                            void *user_data) {
    EXPECT(agent == &agent_made && callback == gb_event_trampoline && (uintptr_t)user_data == 99);
    listened_all++;
    return 0;
}
static char *api_fetch_servers(const char *key) {
    EXPECT(key == words[2]);
    return answers ? strdup("[]") : NULL;
}
static const gopher_orch_error_info_t *last_error(void) { return answers ? NULL : &failure; }
static void clear_error(void) {}
static void free_string(void *text) {
    released_strings++;
    free(text);
}
static void set_log_level(int32_t level) { level_set = level; }
static int32_t options_supports_elicitation(void) { return 1; }

static const struct {
    const char *name, *field;
    void (*function)(void);
} exports[] = {
#define X(field, symbol, since, need, type) {symbol, #field, (void (*)(void))field},
#include "../../../csrc/api_table.h"
#undef X
};
enum { EXPORTS = sizeof exports / sizeof *exports };
_Static_assert(EXPORTS <= 32, "a bit for each");

static int export_of(const char *name) {
    for (int i = 0; i < EXPORTS; i++)
        if (strcmp(exports[i].name, name) == 0)
            return i;
    return -1;
}

static void *fuzz_dlsym(void *which, const char *name) {
    int at = export_of(name);
    EXPECT(at >= 0); /* nothing but the table is looked up */
    void *address = NULL;
    if (((library *)which)->functions >> at & 1)
        memcpy(&address, &exports[at].function, sizeof address);
    return address;
}

static bool has(const library *one, const char *field, const char *ending) {
    char name[80];
    snprintf(name, sizeof name, "gopher_orch_%s%s%s", strncmp(field, "create", 6) == 0 ? "agent_" : "", field, ending);
    int at = export_of(name);
    EXPECT(at >= 0);
    return one->functions >> at & 1;
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

/* What no agent can live without, as the documents say. */
static const char *const needed[] = {"gopher_orch_agent_create_by_json", "gopher_orch_agent_create_by_api_key",
                                     "gopher_orch_agent_run", "gopher_orch_agent_release", "gopher_orch_last_error",
                                     "gopher_orch_free"};

/* The last number of "0.1.<number>"; 0 for a function that no version has. */
static unsigned version_of(const char *since) {
    unsigned number = 0;
    return sscanf(since, "0.1.%u", &number) == 1 ? number : 0;
}

static uint32_t functions_of_version(unsigned version) {
    uint32_t found = 0;
    for (size_t i = 0; gb_api_symbol(i); i++) {
        unsigned since = version_of(gb_api_symbol(i)->since);
        if (since && since <= version)
            found |= UINT32_C(1) << export_of(gb_api_symbol(i)->name);
    }
    return found;
}

/* A published library can do what its version says. */
static void check_version(const library *one, unsigned version) {
    EXPECT(has(one, "create_by_json", ""));
    EXPECT(has(one, "create_by_url", "") == (version >= 23));
    EXPECT(has(one, "create_by_gateway_name", "") == (version >= 23));
    EXPECT(has(one, "create_by_url", "_with_options") == (version >= 30));
    EXPECT(!(one->functions >> export_of("gopher_orch_agent_options_supports_elicitation") & 1));
}

static void define(library *one) {
    if (one->opened)
        return;
    uint8_t how = input_byte(&in);
    if (how < 100) {
        one->functions = functions_of_version(1 + how % 45);
        check_version(one, 1 + how % 45);
    } else {
        one->functions = how < 128 ? UINT32_MAX >> how % 32 : (uint32_t)input_number(&in, 4);
        for (size_t i = 0; how & 1 && i < sizeof needed / sizeof *needed; i++)
            one->functions |= UINT32_C(1) << export_of(needed[i]);
    }
}

/* The whole text that an unusable library is refused with; empty when it is usable. */
static size_t complaint(const library *one, const char *path, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; gb_api_symbol(i); i++)
        for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
            if (strcmp(gb_api_symbol(i)->name, needed[k]) == 0 && !(one->functions >> export_of(needed[k]) & 1))
                used += used ? (size_t)snprintf(text + used, size - used, ", %s", needed[k])
                             : (size_t)snprintf(text, size, "%s is not a usable libgopher-orch: it lacks %s", path,
                                                needed[k]);
    return used;
}

static void open_one(void) {
    static const char *const odd[] = {"", "/9", "nothing", "/"};
    uint8_t which = input_byte(&in);
    char path[3] = {'/', (char)('0' + which % LIBRARIES), 0}, whole[600] = "", text[700];
    const char *asked = which >= 248 ? NULL : which >= 240 ? odd[which % 4] : path;
    size_t size = input_byte(&in) * 2u + input_byte(&in) % 2;
    library *one = asked ? library_at(asked) : NULL;
    int before = one ? one->opened : 0;
    memset(text, '#', sizeof text);
    char *error = malloc(size ? size : 1); /* of exactly this size, so that one byte more is seen */
    const gb_api *api = gb_api_open(asked, error, size);
    bool wrong = one && complaint(one, asked, whole, sizeof whole) > 0;
    EXPECT((api != NULL) == (one && !wrong && !no_memory));
    if (!asked || !*asked)
        strcpy(whole, "no path was given");
    else if (no_memory)
        strcpy(whole, "out of memory");
    else if (!one)
        strcpy(whole, loader_is_silent ? "the loader gave no reason" : "no such file");
    if (size) {
        EXPECT(memchr(error, 0, size));
        EXPECT(strncmp(error, whole, size - 1) == 0 && strlen(error) <= strlen(whole));
        EXPECT(strlen(error) == (strlen(whole) < size ? strlen(whole) : size - 1));
    }
    free(error);
    if (!one)
        return;
    EXPECT(one->opened == (api ? 1 : before));
    EXPECT(!api || !one->api || one->api == api);
    one->api = api ? api : one->api;
}

static void preload_one(void) {
    char path[3] = {'/', (char)('0' + input_byte(&in) % 10), 0}, error[40];
    library *one = library_at(path);
    bool opened_now = gb_preload(path, false, error, sizeof error);
    EXPECT(opened_now == (one != NULL) && (opened_now == !*error));
    if (one)
        one->opened--; /* it stays open; the others' count is told apart */
    EXPECT(!gb_preload(NULL, true, NULL, 0) && !gb_preload("", true, error, 3) && strcmp(error, "no") == 0);
}

static void check_table(const library *one) {
    for (size_t i = 0; i < EXPORTS; i++)
        EXPECT(gb_api_has(one->api, exports[i].name) == (one->functions >> i & 1));
    char name[60];
    size_t length = input_byte(&in) % sizeof name;
    for (size_t i = 0; i < length; i++)
        name[i] = (char)input_byte(&in);
    name[length ? length - 1 : 0] = '\0';
    int at = export_of(name);
    EXPECT(gb_api_has(one->api, name) == (at >= 0 && one->functions >> at & 1));
    EXPECT(!gb_api_has(one->api, NULL) && !gb_api_has(NULL, exports[0].name));
    level_set = -1;
    gb_api_set_log_level(one->api, 4);
    EXPECT((level_set == 4) == has(one, "set_log_level", ""));
}

/* ---- calls --------------------------------------------------------------------------------------------------- */

static void call_ends(gb_call *call) {
    forget_arguments(call);
    if (call->text)
        call->api->free_string(call->text);
    free(call->error_message);
    free(call->error_details);
}

static void check_failure(const gb_call *call, const char *function) {
    EXPECT(!call->ok && call->error_code == GB_ERROR_NO_FUNCTION);
    EXPECT(no_memory ? !call->error_message : (strstr(call->error_message, function) != NULL));
}

static void check_listening(const library *one, bool to_all) {
    int events = has(one, "create_by_json", "") && one->functions >> export_of("gopher_orch_agent_set_event_callback") & 1;
    int all = one->functions >> export_of("gopher_orch_agent_set_event_callback_all") & 1;
    EXPECT(listened_all == (all && (to_all || !events)));
    EXPECT(listened == (listened_all || !events ? 0 : to_all ? 0xfe : 2));
}

static void create(const library *one) {
    static const char *const fields[] = {"create_by_json", "create_by_api_key", "create_by_url", "create_by_server_id",
                                         "create_by_server_name", "create_by_gateway_id", "create_by_gateway_name"};
    uint8_t bits = input_byte(&in);
    gb_factory factory = (gb_factory)(bits % 7);
    bool with_options = bits & 64, to_all = bits & 128;
    gb_slot slot = {.state = to_all ? GB_STATE_EVENTS : 0};
    struct gb_agent agent = {.api = one->api, .hot = &slot};
    gb_call call = {.kind = GB_CALL_CREATE, .factory = factory, .api = one->api, .agent = &agent, .token = 99,
                    .provider = words[0], .model = words[1], .api_key = words[2], .target = words[3],
                    .options = with_options ? &given : NULL};
    called = NULL;
    listened = listened_all = 0;
    answers = input_byte(&in) & 1;
    do_create(&call);
    char field[60];
    snprintf(field, sizeof field, "%s%s", fields[factory], with_options ? "_with_options" : "");
    if (has(one, field, "")) {
        EXPECT(called && strcmp(called, field) == 0 && options_given == with_options);
        EXPECT(call.ok == answers && agent.handle == (answers ? &agent_made : NULL));
        EXPECT(call.error_code == (answers ? 0 : -20));
        if (answers)
            check_listening(one, to_all);
    } else {
        EXPECT(!called && !agent.handle && !listened && !listened_all);
        check_failure(&call, field);
    }
    call_ends(&call);
}

static void run(const library *one) {
    struct gb_agent agent = {.api = one->api, .handle = &agent_made};
    gb_call call = {.kind = GB_CALL_RUN, .api = one->api, .agent = &agent, .query = words[1], .native_timeout_ms = 7};
    bool counts = one->functions >> export_of("gopher_orch_agent_add_ref") & 1;
    answers = input_byte(&in) & 1;
    references = 0;
    released_strings = 0;
    do_run(&call);
    EXPECT(references == counts && (call.run_handle != NULL) == counts && call.ok == answers);
    call_ends(&call);
    EXPECT(released_strings == answers);
}

static void fetch(const library *one) {
    gb_call call = {.kind = GB_CALL_FETCH, .api = one->api, .api_key = words[2]};
    answers = input_byte(&in) & 1;
    do_fetch(&call);
    if (has(one, "api_fetch_servers", ""))
        EXPECT(call.ok == answers);
    else
        check_failure(&call, "api_fetch_servers");
    call_ends(&call);
}

/* ---- all of it ----------------------------------------------------------------------------------------------- */

static void step(void) {
    uint8_t what = input_byte(&in);
    library *one = &libraries[what >> 3 & 31 ? (what >> 3) % LIBRARIES : 0];
    switch (what & 7) {
    case 0: define(one); break;
    case 1: case 2: open_one(); break;
    case 3: if (one->api) check_table(one); break;
    case 4: case 5: if (one->api) create(one); break;
    case 6: if (one->api && what & 128) run(one); else if (one->api) fetch(one); break;
    case 7: switch (what >> 3 & 3) {
        case 0: no_memory = !no_memory; break;
        case 1: loader_is_silent = !loader_is_silent; break;
        default: preload_one();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    in = (input){data, data + size};
    for (int steps = 0; input_has(&in) && steps < MOST_STEPS; steps++)
        step();
    while (opened) {
        struct gb_api *api = opened;
        opened = api->next;
        forget(api);
    }
    for (int i = 0; i < LIBRARIES; i++)
        EXPECT(libraries[i].opened == 0);
    memset(libraries, 0, sizeof libraries);
    no_memory = loader_is_silent = false;
    return 0;
}
