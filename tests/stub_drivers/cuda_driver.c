/* A CUDA driver as far as env_check and a rank ask it. Options: CUDA_VERSION, GPUS, POOLLESS (the GPU without memory
   pools), NO_DEVICE, ABORTS, CONTEXT_ON (a bit for each GPU on which this process has its primary context). */

#include <stdlib.h>

#ifndef CUDA_VERSION
#define CUDA_VERSION 13000
#endif
#ifndef GPUS
#define GPUS 2
#endif
#ifndef POOLLESS
#define POOLLESS -1
#endif
#ifndef CONTEXT_ON
#define CONTEXT_ON 0
#endif

int cuInit(unsigned flags) {
#ifdef ABORTS
  abort();
#endif
#ifdef NO_DEVICE
  return 100; /* CUDA_ERROR_NO_DEVICE */
#endif
  return flags ? 1 : 0;
}

int cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return 0;
}

int cuDeviceGetCount(int *count) {
  *count = GPUS;
  return 0;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal < GPUS ? 0 : 101; /* CUDA_ERROR_INVALID_DEVICE */
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 115 && device != POOLLESS; /* CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED */
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  for (int byte = 0; byte < 16; byte++)
    uuid[byte] = (unsigned char)(16 * device + byte);
  return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  *flags = 0;
  *active = CONTEXT_ON >> device & 1;
  return 0;
}
