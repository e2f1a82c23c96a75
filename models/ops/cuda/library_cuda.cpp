// The CUDA kernels of torch.ops.tempo, in a library of their own (tempo_ops_cuda). It is opened
// after libtorch_cuda, if CUDA is there.

#include "models/ops/kernel_ops.h"

#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <type_traits>

namespace models::ops {
namespace {

/// Whether a kernel with these arguments draws a mask: a forward that drops, and a backward whose
/// mask is not stored.
template <class Args>
bool draws_mask(const Args& args) {
    if constexpr (requires { args.key; }) {
        constexpr bool writes_mask = std::is_same_v<decltype(args.mask), uint8_t*>;
        const bool draws = args.dropout_p > 0 && args.dropout_p < 1;  // 1 drops all
        return draws && (writes_mask || args.mask_kind == kernels::MaskKind::kNone);
    } else {
        return false;
    }
}

/// Launches on torch's current stream of the current device; asynchronous.
struct Cuda {
    static constexpr bool kComputes = true;
    static constexpr bool kSumsInMemory = false;
    static constexpr uintptr_t kAlignment = 16;  // of data that is read and written in packs

    template <typename Args>
    static void run(const Args& args, int64_t count) {
        kernels::launch(args, count, stream_of(args));
    }
    static int64_t layer_norm_num_partials(int64_t num_rows) {
        return kernels::layer_norm_cuda_num_partials(num_rows);
    }

private:
    /// Errors: the stream captures a CUDA graph, which would replay the mask that `args` draws.
    template <class Args>
    static kernels::CudaStream stream_of(const Args& args) {
        if (draws_mask(args) && !replayed_masks_allowed()) {
            TORCH_CHECK(
                c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None,
                "tempo: a CUDA graph would replay one dropout mask in every step, because "
                "its key is an argument of the launch. Capture with p = 0, or allow it: "
                "torch.ops.tempo.allow_replayed_masks(True)");
        }
        return c10::cuda::getCurrentCUDAStream().stream();
    }
};

/// Calls `function` with the device of its first tensor as the current device, which is where
/// kernels are launched.
template <auto function>
struct OnDevice;
template <typename Result, typename First, typename... Rest, Result (*function)(First, Rest...)>
struct OnDevice<function> {
    static Result call(First tensor, Rest... rest) {
        const c10::cuda::CUDAGuard guard(tensor.device());
        return function(tensor, rest...);
    }
};

}  // namespace

TORCH_LIBRARY_IMPL(tempo, CUDA, m) { add_kernel_ops<Cuda, OnDevice>(m); }

}  // namespace models::ops
