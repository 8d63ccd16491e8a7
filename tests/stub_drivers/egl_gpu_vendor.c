/* A GLVND vendor library that renders with Mesa's software renderer and says that it is CUDA's GPU CUDA_INDEX, whose UUID
   is 16 times the byte DEVICE_BYTE. -DDRAWS_NOTHING: its draw calls do nothing. -DINITIALIZE_FAILS: no display. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#ifndef CUDA_INDEX
#define CUDA_INDEX 0
#endif
#ifndef DEVICE_BYTE
#define DEVICE_BYTE 0x11
#endif

typedef void (*Function)(void);

/* Entries of __EGLapiImports (glvnd/libeglabi.h). */
enum { GET_PROC_ADDRESS = 3, GET_DISPATCH_ADDRESS = 4 };

static Function (*real_find)(const char *);
static Function (*real_dispatch)(const char *);
static const unsigned char *(*real_get_string)(unsigned);

static const char *device_string(void *device, int name) {
    if (name == 0x3055) return "EGL_NV_device_cuda EGL_EXT_device_drm_render_node EGL_EXT_device_persistent_id";
    return name == 0x3377 ? "/dev/dri/renderD128" : 0;
}

static unsigned device_attribute(void *device, int name, intptr_t *value) {
    *value = CUDA_INDEX;
    return name == 0x323A;
}

static unsigned device_binary(void *device, int name, int room, void *value, int *size) {
    if (name != 0x335C || room < 16) return 0;
    memset(value, DEVICE_BYTE, 16);
    *size = 16;
    return 1;
}

static const unsigned char *get_string(unsigned name) {
    return name == 0x1F01 ? (const unsigned char *)"Stub GPU" : real_get_string(name); /* GL_RENDERER */
}

static unsigned no_display(void *display, int *major, int *minor) { return 0; }

static void nothing(void) {}

static Function find(const char *name) {
    if (!strcmp(name, "eglQueryDeviceStringEXT")) return (Function)device_string;
    if (!strcmp(name, "eglQueryDeviceAttribEXT")) return (Function)device_attribute;
    if (!strcmp(name, "eglQueryDeviceBinaryEXT")) return (Function)device_binary;
#ifdef INITIALIZE_FAILS
    if (!strcmp(name, "eglInitialize")) return (Function)no_display;
#endif
#ifdef DRAWS_NOTHING
    if (!strncmp(name, "glDrawArrays", 12)) return nothing;
#endif
    if (!strcmp(name, "glGetString")) {
        real_get_string = (const unsigned char *(*)(unsigned))real_find(name);
        return (Function)get_string;
    }
    return real_find(name);
}

/* libglvnd asks for the functions it does not know itself; with one vendor no dispatching is needed. */
static Function find_dispatch(const char *name) {
    return !strcmp(name, "eglQueryDeviceBinaryEXT") ? (Function)device_binary : real_dispatch(name);
}

unsigned __egl_Main(uint32_t version, const void *exports, void *vendor, Function *imports) {
    void *mesa = dlopen("libEGL_mesa.so.0", RTLD_NOW | RTLD_LOCAL);
    unsigned (*real_main)(uint32_t, const void *, void *, Function *) = dlsym(mesa, "__egl_Main");
    unsigned result = real_main(version, exports, vendor, imports);
    real_find = (Function (*)(const char *))imports[GET_PROC_ADDRESS];
    real_dispatch = (Function (*)(const char *))imports[GET_DISPATCH_ADDRESS];
    imports[GET_PROC_ADDRESS] = (Function)find;
    imports[GET_DISPATCH_ADDRESS] = (Function)find_dispatch;
    return result;
}
