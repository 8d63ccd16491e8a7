/* A Vulkan driver that fails as it is told to, by -D:
   NEGOTIATE_RESULT, CREATE_RESULT, ENUMERATE_RESULT: the VkResult of that call (0 without); it has no devices.
   CREATE_ABORTS, CREATE_HANGS, CREATE_EXITS: what vkCreateInstance does instead of returning. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef NEGOTIATE_RESULT
#define NEGOTIATE_RESULT 0
#endif
#ifndef CREATE_RESULT
#define CREATE_RESULT 0
#endif
#ifndef ENUMERATE_RESULT
#define ENUMERATE_RESULT 0
#endif

typedef void (*Function)(void);

static struct { uintptr_t loader_magic; } instance = {0x01CDC0DE};

static int create_instance(const void *info, const void *allocator, void **result) {
#ifdef CREATE_ABORTS
    abort();
#endif
#ifdef CREATE_EXITS
    _exit(3);
#endif
#ifdef CREATE_HANGS
    for (;;) pause();
#endif
    *result = &instance;
    return CREATE_RESULT;
}

static void destroy_instance(void *handle, const void *allocator) {}

static int enumerate_devices(void *handle, uint32_t *count, void **devices) {
    *count = 0;
    return ENUMERATE_RESULT;
}

static int enumerate_extensions(const char *layer, uint32_t *count, void *properties) {
    *count = 0;
    return 0;
}

static int enumerate_version(uint32_t *version) {
    *version = 1u << 22 | 3u << 12;
    return 0;
}

static void nothing(void) {}

int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    if (*version > 5) *version = 5;
    return NEGOTIATE_RESULT;
}

Function vk_icdGetInstanceProcAddr(void *handle, const char *name) {
    if (!strcmp(name, "vkCreateInstance")) return (Function)create_instance;
    if (!strcmp(name, "vkDestroyInstance")) return (Function)destroy_instance;
    if (!strcmp(name, "vkEnumeratePhysicalDevices")) return (Function)enumerate_devices;
    if (!strcmp(name, "vkEnumerateInstanceExtensionProperties")) return (Function)enumerate_extensions;
    if (!strcmp(name, "vkEnumerateInstanceVersion")) return (Function)enumerate_version;
    return strstr(name, "KHR") || strstr(name, "EXT") ? 0 : nothing;
}
