/* api.c: opening, the symbol table, libraries that lack something. */
#include "check.h"

static void table_is_whole(void) {
    size_t count = 0, required = 0;
    for (const gb_symbol *symbol; (symbol = gb_api_symbol(count)); count++) {
        required += symbol->required;
        CHECK(strncmp(symbol->name, "gopher_orch_", 12) == 0);
        for (size_t other = 0; other < count; other++)
            CHECK(strcmp(symbol->name, gb_api_symbol(other)->name) != 0);
    }
    CHECK(count == 25);
    CHECK(required == 6);
    CHECK(gb_api_symbol(SIZE_MAX) == NULL);
}

static void a_whole_library(void) {
    const gb_api *api = fake_api();
    for (size_t i = 0; gb_api_symbol(i); i++)
        CHECK(gb_api_has(api, gb_api_symbol(i)->name));
    CHECK(!gb_api_has(api, "gopher_orch_agent_cancel"));
    CHECK(!gb_api_has(api, NULL) && !gb_api_has(NULL, "gopher_orch_free"));
    CHECK(fake_api() == api);
}

static void an_old_library(void) {
    char error[512];
    const gb_api *api = gb_api_open(FAKE_OLD_LIBRARY, error, sizeof error);
    CHECK(api != NULL && error[0] == '\0');
    CHECK(!gb_api_has(api, "gopher_orch_agent_set_event_callback"));
    CHECK(gb_api_has(api, "gopher_orch_agent_run"));
}

static void what_cannot_be_opened(void) {
    char error[512], tiny[8];
    CHECK(gb_api_open("/nowhere/libgopher-orch.so", error, sizeof error) == NULL);
    CHECK(strstr(error, "/nowhere/libgopher-orch.so"));
    CHECK(gb_api_open("/nowhere/libgopher-orch.so", tiny, sizeof tiny) == NULL && strlen(tiny) == sizeof tiny - 1);
    CHECK(gb_api_open("/nowhere/libgopher-orch.so", NULL, 0) == NULL);
    CHECK(gb_api_open(NULL, error, sizeof error) == NULL && error[0]);
    CHECK(gb_api_open("", error, sizeof error) == NULL && error[0]);
}

static void another_library_is_named_for_what_it_lacks(void) {
    char error[512], tiny[40];
    CHECK(gb_api_open(OTHER_LIBRARY, error, sizeof error) == NULL);
    CHECK(strstr(error, "lacks gopher_orch_agent_create_by_json"));
    CHECK(strstr(error, ", gopher_orch_free"));
    CHECK(gb_api_open(OTHER_LIBRARY, tiny, sizeof tiny) == NULL && strlen(tiny) == sizeof tiny - 1);
}

static void preload(void) {
    char error[512];
    CHECK(gb_preload(OTHER_LIBRARY, false, error, sizeof error) && error[0] == '\0');
    CHECK(gb_preload(OTHER_LIBRARY, true, error, sizeof error));
    CHECK(!gb_preload("/nowhere/libcrypto.so.1.1", true, error, sizeof error));
    CHECK(strstr(error, "libcrypto.so.1.1"));
    CHECK(!gb_preload(NULL, false, NULL, 0));
}

int main(void) {
    table_is_whole();
    a_whole_library();
    an_old_library();
    what_cannot_be_opened();
    another_library_is_named_for_what_it_lacks();
    preload();
    return report("api");
}
