/// The times that the kernel model gives to single kernels, for tools/validate/judge-kernels.
///
///     kernel_times SETUP < kernels.txt
///
/// Each line has a GPU, a type, an op and its sizes b, m, n, k, between spaces. The answer is a
/// line with the time in nanoseconds.
///
///     linear, bmm           b products of [m, k] by [k, n]
///     softmax, layer_norm   m rows of n elements
///     1, 2                  an element-wise op of m n elements with one or two inputs
#include "models/config/names.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/step/kernel_model.h"

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <string>

namespace {
using namespace profiler;

KernelWork work_of(const std::string& op, MatmulType type, const GemmShape& shape) {
    const auto [b, m, n, k] = shape;
    const int64_t word_bytes = type == MatmulType::kFp32 || type == MatmulType::kTf32 ? 4 : 2;
    if (op == "linear" || op == "bmm") {
        return {.kernel = op == "bmm" ? KernelKind::kBatchedGemm : KernelKind::kGemm,
                .type = type,
                .flop = 2 * b * m * n * k,
                .moved_bytes = word_bytes * b * (m * k + k * n + m * n),
                .shape = shape};
    }
    const int64_t words = op == "2" ? 3 : 2;
    const KernelKind kernel = op == "softmax"      ? KernelKind::kSoftmax
                              : op == "layer_norm" ? KernelKind::kLayerNorm
                                                   : KernelKind::kElementWise;
    return {
        .kernel = kernel, .type = type, .moved_bytes = words * m * n * word_bytes, .columns = n};
}

}  // namespace

int main(int argc, char** argv) {
    const PlannerData& data = built_in_planner_data();
    const auto environment = find_environment(data.environments, argc > 1 ? argv[1] : kUsualSetup);
    if (!environment) {
        fmt::print(stderr, "{}\n", environment.error().message);
        return 2;
    }
    std::map<std::string, KernelModel> models;
    std::string gpu, type, op;
    GemmShape shape;
    while (std::cin >> gpu >> type >> op >> shape.batch >> shape.m >> shape.n >> shape.k) {
        const auto card = find_gpu(data.gpus, gpu);
        const auto of_type = models::find_name<MatmulType>(kMatmulTypeNames, type);
        if (!card || !of_type) {
            fmt::print(stderr, "'{}' is not a GPU with products of '{}'.\n", gpu, type);
            return 2;
        }
        const auto model = models.try_emplace(gpu, **card, **environment, data.calibration).first;
        fmt::print("{:.0f}\n", model->second.time_ns(work_of(op, *of_type, shape)));
    }
    return 0;
}
