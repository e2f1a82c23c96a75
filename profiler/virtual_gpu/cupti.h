#pragma once

#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/work.h"

/// What CUPTI hears of. cupti.cpp makes activity records of it, in CUPTI's own structs, as far as a
/// client asked for them.
namespace profiler::virtual_gpu {

void cupti_work_done(const Work& work);
void cupti_memory(bool is_release, const void* address, uint64_t size_bytes);
void cupti_stream_made(cudaStream_t stream);
void cupti_stream_ends(cudaStream_t stream);

}  // namespace profiler::virtual_gpu
