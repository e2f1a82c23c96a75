#include "profiler/capture/freed_memory.h"

#include <jemalloc/jemalloc.h>

/// Read by jemalloc when the process starts (jemalloc(3), TUNING).
/// decay -1: pages are never returned. oversize_threshold 0: large blocks come from the one arena,
/// too, so that all blocks reuse its freed extents.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,narenas:1";
}

namespace profiler {

#define TEMPOSCOPE_TEXT(x) #x
#define TEMPOSCOPE_ARENA_PURGE(arena) "arena." TEMPOSCOPE_TEXT(arena) ".purge"

void return_freed_memory() {
    mallctl(TEMPOSCOPE_ARENA_PURGE(MALLCTL_ARENAS_ALL), nullptr, nullptr, nullptr, 0);
}

}  // namespace profiler
