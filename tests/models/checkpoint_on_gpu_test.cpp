// A checkpoint on a GPU, which is a virtual one: no kernel runs, but torch's generator counts what
// each kernel draws.

#include "models/ops/checkpoint.h"
#include "profiler/protocol/virtual_gpu_process.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace models {
namespace {

at::Generator generator_of_gpu() {
    return at::globalContext().defaultGenerator(at::Device(at::kCUDA, 0));
}

/// Flash attention with dropout says from where it draws; so does the run of it in backward.
TEST(CheckpointOnAGpu, RunsFlashAttentionAgainFromTheSameRandomNumbers) {
    const auto options = at::device(at::Device(at::kCUDA, 0)).dtype(at::kBFloat16);
    const at::Tensor x = at::empty({2, 4, 64, 32}, options).requires_grad_();
    std::vector<uint64_t> offsets;
    const at::Tensor z = ops::checkpoint(
        "layer",
        [&](at::TensorList t) {
            offsets.push_back(generator_of_gpu().get_offset());
            return std::get<0>(at::_scaled_dot_product_flash_attention(t[0], t[0], t[0], 0.1));
        },
        {x});
    (void)at::rand({8}, options);  // what comes between must not matter
    const uint64_t offset = generator_of_gpu().get_offset();
    EXPECT_GT(offset, offsets.front()) << "the kernel draws";
    torch::autograd::backward({z.sum()}, {});
    ASSERT_EQ(offsets.size(), 2U);
    EXPECT_EQ(offsets[1], offsets[0]);
    EXPECT_EQ(generator_of_gpu().get_offset(), offset);
}

}  // namespace
}  // namespace models

/// Starts itself again where it sees a virtual GPU: the libraries must be there before torch is.
int main(int count, char** arguments) {
    if (std::getenv(profiler::kVirtualGpuVariable) == nullptr) {
        const auto environment = profiler::virtual_gpu_environment(
            TEMPOSCOPE_BINARY_DIR "/virtual_gpu", {{.name = "virtual",
                                                    .capability = models::kAmpere,
                                                    .total_bytes = int64_t{8} << 30,
                                                    .context_bytes = int64_t{1} << 28,
                                                    .sm_count = 108,
                                                    .l2_bytes = int64_t{40} << 20}});
        if (!environment) {
            std::fprintf(stderr, "%s\n", environment.error().message.c_str());
            return 1;
        }
        for (const std::string& entry : *environment) {
            const auto equals = entry.find('=');
            setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
        }
        execv(arguments[0], arguments);
        std::perror("execv");
        return 1;
    }
    testing::InitGoogleTest(&count, arguments);
    return RUN_ALL_TESTS();
}
