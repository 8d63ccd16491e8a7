/* NVML as far as a rank asks it of the processes on two GPUs, whose UUIDs are those of cuda_driver.c. Options: ON (a bit
   for each GPU on which this process is listed), REFUSES (no list of processes), NO_MEMORY (its memory is not told). */

#include <string.h>
#include <unistd.h>

#ifndef ON
#define ON 0
#endif
#define SUCCESS 0
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7

struct process {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

static const char *UUIDS[] = {"GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"};

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
  for (unsigned gpu = 0; gpu < 2; gpu++)
    if (!strcmp(uuid, UUIDS[gpu])) {
      *handle = (void *)(unsigned long)(gpu + 1);
      return SUCCESS;
    }
  return NOT_FOUND;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, struct process *processes) {
  unsigned gpu = (unsigned)(unsigned long)handle - 1, needed = 1 + (ON >> gpu & 1), given = *count;
#ifdef REFUSES
  return NOT_SUPPORTED;
#endif
  *count = needed;
  if (given < needed)
    return INSUFFICIENT_SIZE;
  processes[0] = (struct process){1, 8000000000ull, ~0u, ~0u}; /* somebody else's */
  if (needed == 2) {
    processes[1] = (struct process){(unsigned)getpid(), 520000000ull * (gpu + 1), ~0u, ~0u};
#ifdef NO_MEMORY
    processes[1].used_memory = ~0ull;
#endif
  }
  return SUCCESS;
}
