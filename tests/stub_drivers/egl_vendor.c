/* A GLVND vendor library without any device. -DABORTS, -DHANGS: what its eglQueryDevicesEXT does instead. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*Function)(void);

static void *nothing(void) { return 0; }

static unsigned supports_api(unsigned api) { return 1; }

static const char *query_string(void *display, int name) {
    return name == 0x3055 ? "EGL_EXT_device_base EGL_EXT_device_enumeration EGL_EXT_platform_device" : 0;
}

static unsigned query_devices(int room, void **devices, int *count) {
#ifdef ABORTS
    abort();
#endif
#ifdef HANGS
    for (;;) pause();
#endif
    *count = 0;
    return 1;
}

static Function get_proc_address(const char *name) {
    if (!strcmp(name, "eglQueryString")) return (Function)query_string;
    if (!strcmp(name, "eglQueryDevicesEXT")) return (Function)query_devices;
    return (Function)nothing;
}

/* The first entries of __EGLapiImports (glvnd/libeglabi.h), all functions. */
enum { GET_PLATFORM_DISPLAY, GET_SUPPORTS_API, GET_VENDOR_STRING, GET_PROC_ADDRESS, GET_DISPATCH_ADDRESS, SET_DISPATCH_INDEX };

unsigned __egl_Main(uint32_t version, const void *exports, void *vendor, Function *imports) {
    for (int i = 0; i <= SET_DISPATCH_INDEX; i++) imports[i] = (Function)nothing;
    imports[GET_SUPPORTS_API] = (Function)supports_api;
    imports[GET_PROC_ADDRESS] = (Function)get_proc_address;
    return 1;
}
