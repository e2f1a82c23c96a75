#pragma once

#include "profiler/capture/torch_adapter/torch_version.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <tuple>

/// What differs between versions of torch in its CUDA caching allocator and its workspaces.
namespace profiler {

#if TEMPOSCOPE_TORCH >= 209
using MempoolId = c10::MempoolId_t;
#else
using MempoolId = c10::cuda::MempoolId_t;
#endif

/// The allocator's segments and blocks, without its history where torch can leave that out.
inline c10::cuda::CUDACachingAllocator::SnapshotInfo take_snapshot() {
#if TEMPOSCOPE_TORCH >= 211
    return c10::cuda::CUDACachingAllocator::snapshot({0, 0}, /*include_traces=*/false);
#else
    return c10::cuda::CUDACachingAllocator::snapshot();
#endif
}

/// Whether the entry is an action of the allocator. Other entries are notes in its history: a
/// snapshot, an annotation of the program (since 2.14), and what later versions add.
inline bool is_action(const c10::cuda::CUDACachingAllocator::TraceEntry& entry) {
    using c10::cuda::CUDACachingAllocator::TraceEntry;
    return entry.action_ <= TraceEntry::OOM && entry.action_ != TraceEntry::SNAPSHOT;
}

/// The pool of an action; {0, 0} is the default pool.
inline MempoolId pool_of(const c10::cuda::CUDACachingAllocator::TraceEntry& entry) {
    return entry.mempool_;
}

/// Starts or ends torch's memory history; `gather` is asked for the context of each request.
inline void record_history(bool wanted, c10::cuda::CUDACachingAllocator::CreateContextFn gather,
                           c10::cuda::CUDACachingAllocator::RecordContext when) {
    constexpr std::size_t kEntries = 1;  // the least: nobody reads them
#if TEMPOSCOPE_TORCH >= 211
    c10::cuda::CUDACachingAllocator::recordHistory(wanted, gather, kEntries, when,
                                                   /*clearHistory=*/true, {});
#else
    c10::cuda::CUDACachingAllocator::recordHistory(wanted, gather, kEntries, when,
                                                   /*clearHistory=*/true);
#endif
}

/// Calls visit(handle, address, bytes) for each workspace of a map of torch. Before 2.13 torch does
/// not keep their sizes: then each has `usual_bytes`.
template <typename Workspaces, typename Visit>
void visit_workspaces(Workspaces& workspaces, [[maybe_unused]] std::size_t usual_bytes,
                      const Visit& visit) {
#if TEMPOSCOPE_TORCH >= 210
    const std::shared_lock lock(workspaces.mutex);
    const auto& map = workspaces.map;
#else
    const auto& map = workspaces;
#endif
    for (const auto& [handle_and_stream, memory] : map) {
#if TEMPOSCOPE_TORCH >= 213
        visit(std::get<0>(handle_and_stream), memory.first.get(),
              static_cast<int64_t>(memory.second));
#else
        visit(std::get<0>(handle_and_stream), memory.get(), static_cast<int64_t>(usual_bytes));
#endif
    }
}

/// Calls visit(handle, address, bytes) for each workspace of cuBLAS that torch keeps.
template <typename Visit>
void visit_cublas_workspaces(const Visit& visit) {
#if TEMPOSCOPE_TORCH == 212
    // 2.12 declares getChosenWorkspaceSize but does not export it: the size of cuBLASLt stands in.
    const std::size_t usual_bytes = at::cuda::getCUDABlasLtWorkspaceSize();
#else
    const std::size_t usual_bytes = at::cuda::getChosenWorkspaceSize();
#endif
    visit_workspaces(at::cuda::cublas_handle_stream_to_workspace(), usual_bytes, visit);
}

/// Calls visit(handle, address, bytes) for each workspace of cuBLASLt that torch keeps. Before 2.9
/// it keeps none: each product asks for its own.
template <typename Visit>
void visit_cublaslt_workspaces([[maybe_unused]] const Visit& visit) {
#if TEMPOSCOPE_TORCH >= 209
    visit_workspaces(at::cuda::cublaslt_handle_stream_to_workspace(),
                     at::cuda::getCUDABlasLtWorkspaceSize(), visit);
#endif
}

/// Whether torch has made a handle of cuBLAS. Asking for the current one would make it, with its
/// workspace.
inline bool has_cublas_workspace() {
    bool has_one = false;
    visit_cublas_workspaces([&](const void*, const void*, int64_t) { has_one = true; });
    return has_one;
}

}  // namespace profiler
