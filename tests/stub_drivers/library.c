/* A plain library. -DCALLS_DEPENDENCY: it needs dependency() of another. -DABORTS, -DHANGS: what loading it does. */
#include <stdlib.h>
#include <unistd.h>

#ifdef CALLS_DEPENDENCY
int dependency(void);
int vk_icdGetInstanceProcAddr(void) { return dependency(); }
int __egl_Main(void) { return dependency(); }
#else
int dependency(void) { return 0; }
#endif

__attribute__((constructor)) static void on_load(void) {
#ifdef ABORTS
    abort();
#endif
#ifdef HANGS
    for (;;) pause();
#endif
}
