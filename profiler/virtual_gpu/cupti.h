#pragma once

#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/work.h"

/// What CUPTI hears of. cupti.cpp makes activity records of it, in CUPTI's own structs, as far as a
/// client asked for them.
namespace profiler::virtual_gpu {

void cupti_work_done(const Work& work);
/// `recording` is what an event stands for: the work of a stream up to here. What a stream is given
/// from here on waits for that.
void cupti_event_recorded(uint32_t stream_number, uint64_t recording);
void cupti_stream_waits(uint32_t stream_number, uint64_t recording);
void cupti_memory(bool is_release, const void* address, uint64_t size_bytes);
void cupti_stream_made(cudaStream_t stream);
void cupti_stream_ends(cudaStream_t stream);

}  // namespace profiler::virtual_gpu
