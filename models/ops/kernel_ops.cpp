#include "models/ops/kernel_ops.h"

namespace models::ops {
namespace {

template <auto function>
struct Directly {
    static constexpr auto call = function;
};

}  // namespace

TORCH_LIBRARY_IMPL(tempo, CPU, m) { add_kernel_ops<Cpu, Directly>(m); }
TORCH_LIBRARY_IMPL(tempo, Meta, m) { add_kernel_ops<Meta, Directly>(m); }

}  // namespace models::ops
