/* A Vulkan driver that renders with Mesa's lavapipe and says that it is an NVIDIA GPU, whose UUID is 16 times the byte
   DEVICE_BYTE. -DDRAWS_NOTHING: its draw call does nothing, so a frame keeps its clear colour.
   -DOFFERS_RAY_TRACING: it lists the three ray tracing extensions and nothing else. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#ifndef DEVICE_BYTE
#define DEVICE_BYTE 0x11
#endif

typedef void (*Function)(void);
typedef Function (*Find)(void *, const char *);

/* The beginnings of Vulkan's structures, as far as they are changed here. */
typedef struct { uint32_t api, driver, vendor, device; int32_t type; char name[256]; } Properties;
typedef struct Chained { int32_t type; struct Chained *next; union { Properties properties; uint8_t uuid[16]; int32_t driver_id; } of; } Chained;
typedef struct { char name[256]; uint32_t version; } Extension;

enum { VULKAN_11 = 50, VULKAN_12 = 52, ID = 1000071004, DRIVER = 1000196000 };

static void (*real_properties)(void *, Properties *);
static void (*real_properties_2)(void *, Chained *);
static Find real_device_find;

static void *lavapipe(const char *name) {
    return dlsym(dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_LOCAL), name);
}

static void disguise(Properties *properties) {
    properties->vendor = 0x10de;
    properties->type = 2; /* discrete GPU */
    strcpy(properties->name, "Stub GPU");
}

static void get_properties(void *device, Properties *properties) {
    real_properties(device, properties);
    disguise(properties);
}

static void get_properties_2(void *device, Chained *first) {
    real_properties_2(device, first);
    disguise(&first->of.properties);
    for (Chained *link = first->next; link; link = link->next) {
        if (link->type == ID || link->type == VULKAN_11) memset(link->of.uuid, DEVICE_BYTE, 16);
        if (link->type == DRIVER || link->type == VULKAN_12) link->of.driver_id = 4; /* NVIDIA's own */
    }
}

static int get_extensions(void *device, const char *layer, uint32_t *count, Extension *extensions) {
    static const char *names[] = {"VK_KHR_acceleration_structure", "VK_KHR_ray_query", "VK_KHR_ray_tracing_pipeline"};
    *count = 3;
    for (int i = 0; extensions && i < 3; i++) strcpy(extensions[i].name, names[i]);
    return 0;
}

static void nothing(void) {}

static Function find_for_device(void *device, const char *name) {
#ifdef DRAWS_NOTHING
    if (!strcmp(name, "vkCmdDraw")) return nothing;
#endif
    return real_device_find(device, name);
}

int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    if (*version > 5) *version = 5;
    return ((int (*)(uint32_t *))lavapipe("vk_icdNegotiateLoaderICDInterfaceVersion"))(version);
}

Function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    Function real = ((Find)lavapipe("vk_icdGetInstanceProcAddr"))(instance, name);
    if (!real) return real;
    if (!strcmp(name, "vkGetPhysicalDeviceProperties")) {
        real_properties = (void (*)(void *, Properties *))real;
        return (Function)get_properties;
    }
    if (!strncmp(name, "vkGetPhysicalDeviceProperties2", 30)) {
        real_properties_2 = (void (*)(void *, Chained *))real;
        return (Function)get_properties_2;
    }
    if (!strcmp(name, "vkGetDeviceProcAddr")) {
        real_device_find = (Find)real;
        return (Function)find_for_device;
    }
#ifdef OFFERS_RAY_TRACING
    if (!strcmp(name, "vkEnumerateDeviceExtensionProperties")) return (Function)get_extensions;
#endif
    return real;
}
