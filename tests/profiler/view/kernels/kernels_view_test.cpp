#include "profiler/view/kernels/kernels_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "tests/support/loaded_step.h"

#include <random>

namespace {

using namespace profiler;
using Loaded = tests::LoadedStep;
using testing::Contains;
using testing::ElementsAre;
using testing::Pair;

KernelsView view_of(const Loaded& loaded, double start_ns, double end_ns, int width_px) {
    return build_kernels_view(
        {.steps = {&loaded.index}, .start_ns = start_ns, .end_ns = end_ns, .width_px = width_px});
}

const std::vector<CallBlock>& first_row(const KernelsView& view) {
    return view.traces.at(0).lanes.at(0).rows.at(0).blocks;
}

/// `count` kernels of `length_ns`, one every `period_ns`.
Trace kernels_every(int64_t period_ns, int64_t length_ns, int64_t count) {
    Trace trace;
    const auto op = trace.ops.append({.name = trace.strings.intern("aten::addmm"),
                                      .end_ns = count * period_ns,
                                      .op_class = OpClass::kContraction});
    for (int64_t i = 0; i < count; ++i) {
        trace.kernels.append({.name = trace.strings.intern("volta_sgemm_128x32_nt"),
                              .op = op,
                              .start_ns = i * period_ns,
                              .end_ns = i * period_ns + length_ns});
    }
    return trace;
}

TEST(KernelsView, WideSpansStandAlone) {
    const Loaded loaded(kernels_every(100, 60, 5));
    const KernelsView view = view_of(loaded, 0, 500, 500);
    const auto& blocks = first_row(view);
    ASSERT_EQ(blocks.size(), 5U);
    EXPECT_EQ(blocks[2].start_ns, 200);
    EXPECT_EQ(blocks[2].end_ns, 260);
    EXPECT_EQ(blocks[2].count, 1);
    EXPECT_EQ(blocks[2].call_class, CallClass::kContraction);
    EXPECT_EQ(blocks[2].label, "volta_sgemm_128x32_nt");
    EXPECT_THAT(view.classes, ElementsAre(CallClass::kContraction));
    EXPECT_TRUE(view.has_kernels);
}

TEST(KernelsView, ABlockHoldsItsOpTheForwardOpAndAShortName) {
    Trace trace;
    const auto forward = trace.ops.append({.name = trace.strings.intern("aten::mul")});
    const auto op = trace.ops.append(
        {.name = trace.strings.intern("autograd::engine::evaluate_function: MulBackward0"),
         .forward = forward,
         .start_ns = 10,
         .end_ns = 90});
    trace.kernels.append(
        {.name = trace.strings.intern("void at::native::vectorized_elementwise_kernel<4, "
                                      "at::native::MulFunctor<float> >(int)"),
         .op = op,
         .start_ns = 20,
         .end_ns = 80});
    const Loaded loaded(std::move(trace));
    const KernelsView view = view_of(loaded, 0, 100, 100);
    const CallBlock& kernel = first_row(view).at(0);
    EXPECT_EQ(kernel.label, "MulFunctor");
    EXPECT_EQ(kernel.op, op);
    EXPECT_EQ(kernel.forward, forward);
}

TEST(KernelsView, NarrowSpansOfAPixelBecomeOneBlockThatSaysHowBusyItWas) {
    const Loaded loaded(kernels_every(10, 5, 10'000));
    const KernelsView view = view_of(loaded, 0, 100'000, 100);  // 100 kernels a pixel
    const auto& blocks = first_row(view);
    ASSERT_EQ(blocks.size(), 100U);
    EXPECT_EQ(blocks[7].count, 100);
    EXPECT_EQ(blocks[7].label, "");
    EXPECT_NEAR(blocks[7].busy, 0.5, 0.01);
}

TEST(KernelsView, MergedSpansHaveTheClassThatTakesTheMostTime) {
    Trace trace;
    const auto mul = trace.ops.append({.op_class = OpClass::kElementWise});
    const auto addmm = trace.ops.append({.op_class = OpClass::kContraction});
    trace.kernels.append({.op = mul, .start_ns = 0, .end_ns = 2});
    trace.kernels.append({.op = addmm, .start_ns = 2, .end_ns = 8});
    trace.kernels.append({.op = mul, .start_ns = 8, .end_ns = 10});
    const Loaded loaded(std::move(trace));
    const auto view = view_of(loaded, 0, 1000, 100);
    const auto& blocks = first_row(view);
    ASSERT_EQ(blocks.size(), 1U);
    EXPECT_EQ(blocks[0].count, 3);
    EXPECT_EQ(blocks[0].call_class, CallClass::kContraction);
}

TEST(KernelsView, AWideSpanIsNeverMergedWithItsNarrowNeighbours) {
    Trace trace;
    trace.kernels.append({.start_ns = 0, .end_ns = 1});
    trace.kernels.append({.start_ns = 2, .end_ns = 3});
    trace.kernels.append({.start_ns = 4, .end_ns = 500});
    const Loaded loaded(std::move(trace));
    const auto view = view_of(loaded, 0, 1000, 100);
    ASSERT_EQ(first_row(view).size(), 2U);
    EXPECT_EQ(first_row(view)[0].count, 2);
    EXPECT_EQ(first_row(view)[1].id, (CallId{CallKind::kKernel, 2}));
}

TEST(KernelsView, AnyWindowShowsEachSpanInItOnce) {
    std::mt19937 random(3);
    Trace trace;
    int64_t now = 0;
    for (int i = 0; i < 5000; ++i) {
        now += static_cast<int64_t>(random() % 50);
        const int64_t start = now;
        now += static_cast<int64_t>(random() % (i % 40 == 0 ? 5000 : 20));
        trace.kernels.append({.start_ns = start, .end_ns = now});
    }
    const Loaded loaded(std::move(trace));
    const auto starts = loaded.trace.kernels.column<&Kernel::start_ns>();
    const auto ends = loaded.trace.kernels.column<&Kernel::end_ns>();
    for (int i = 0; i < 200; ++i) {
        const auto from = static_cast<int64_t>(random() % static_cast<uint64_t>(now));
        const int64_t to = from + 1 + static_cast<int64_t>(random() % 100'000);
        const int width = 1 + static_cast<int>(random() % 900);
        const auto view =
            view_of(loaded, static_cast<double>(from), static_cast<double>(to), width);
        int64_t expected = 0;
        for (std::size_t k = 0; k < starts.size(); ++k)
            expected += ends[k] > from && starts[k] < to;
        int64_t shown = 0;
        for (const CallBlockRow& row : view.traces[0].lanes[0].rows) {
            for (const CallBlock& block : row.blocks) shown += block.count;
            ASSERT_LE(row.blocks.size(), static_cast<std::size_t>(2 * width + 3));
        }
        ASSERT_EQ(shown, expected) << from << " to " << to << ", " << width << " px";
    }
}

TEST(KernelsView, TheSecondTraceIsStretchedOntoTheFirst) {
    const Loaded first(kernels_every(100, 60, 5)), second(kernels_every(200, 100, 5));
    auto alignment = std::make_shared<Alignment>();
    alignment->second = TimeMap({{0, 0}, {500, 1000}});
    const auto view = build_kernels_view({.steps = {&first.index, &second.index},
                                          .start_ns = 0,
                                          .end_ns = 500,
                                          .width_px = 500,
                                          .alignment = alignment});
    const auto& blocks = view.traces.at(1).lanes.at(0).rows.at(0).blocks;
    ASSERT_EQ(blocks.size(), 5U);
    EXPECT_EQ(blocks[1].start_ns, 100);
    EXPECT_EQ(blocks[1].end_ns, 150);
    EXPECT_THROW(
        build_kernels_view(
            {.steps = {&first.index, &second.index}, .start_ns = 0, .end_ns = 1, .width_px = 1}),
        std::logic_error);
}

TEST(KernelsView, AnImpossibleWindowIsEmpty) {
    const Loaded loaded(kernels_every(10, 5, 3));
    EXPECT_TRUE(view_of(loaded, 5, 5, 100).traces.empty());
    EXPECT_TRUE(view_of(loaded, 0, 10, 0).traces.empty());
    EXPECT_TRUE(view_of(loaded, 0, 1e300, 10).traces.empty());
}

// Names as Kineto recorded them on a V100 and an H100.
TEST(ShortName, SaysWhichKernelItIs) {
    EXPECT_EQ(short_name("aten::addmm"), "aten::addmm");
    EXPECT_EQ(short_name("autograd::engine::evaluate_function: AddmmBackward0"), "AddmmBackward0");
    EXPECT_EQ(short_name("volta_sgemm_128x32_nt"), "volta_sgemm_128x32_nt");
    EXPECT_EQ(
        short_name("void at::native::vectorized_elementwise_kernel<4, "
                   "at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, "
                   "at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"),
        "CUDAFunctor_add");
    EXPECT_EQ(
        short_name("void at::native::vectorized_elementwise_kernel<4, "
                   "at::native::BinaryFunctor<float, float, float, "
                   "at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, "
                   "3> >(int)"),
        "MulFunctor");
    EXPECT_EQ(
        short_name("void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, "
                   "at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor<"
                   "c10::BFloat16, float, c10::BFloat16>::operator()(at::TensorIterator&)> > >()"),
        "sum_functor");
    EXPECT_EQ(short_name("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<"
                         "c10::BFloat16, float>(int, float)"),
              "vectorized_layer_norm_kernel");
    EXPECT_EQ(
        short_name("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32>("
                   "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32::Params)"),
        "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32");
    EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<4, "
                         "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
                         "at::native::GeluType)::{lambda()#2}::operator()() const>(int)"),
              "GeluCUDAKernelImpl");
    EXPECT_EQ(
        short_name("std::enable_if<!(false), void>::type internal::gemvx::run<int, float>(int)"),
        "run");
    EXPECT_EQ(short_name("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"),
              "ncclKernel_AllReduce_RING_LL_Sum_float");
}

TEST(ShortName, NeverReadsPastDamagedNames) {
    for (const char* name :
         {"", "<", "(", "void ", "Kernel<", "Kernel<1", "Kernel<1,", "Kernel<>>"}) {
        EXPECT_LE(short_name(name).size(), std::string(name).size()) << name;
    }
}

TEST(ReadKernels, TellsOfAKernelItsOpLayerAndRates) {
    Trace trace;
    const auto module_path =
        trace.module_paths.append({.path = trace.strings.intern("encoder.layer.1.output.dense")});
    const auto phase = trace.phases.append({.kind = PhaseKind::kBackward});
    const auto forward = trace.ops.append({.name = trace.strings.intern("aten::linear")});
    const auto op = trace.ops.append({.name = trace.strings.intern("aten::addmm"),
                                      .module_path = module_path,
                                      .phase = phase,
                                      .forward = forward,
                                      .flop = 4'000'000,
                                      .read_words = 10,
                                      .written_words = 5});
    const auto kernel = trace.kernels.append({.name = trace.strings.intern("volta_sgemm"),
                                              .op = op,
                                              .start_ns = 1000,
                                              .end_ns = 3000,
                                              .grid_x = 8,
                                              .grid_y = 2,
                                              .grid_z = 1,
                                              .block_x = 128,
                                              .block_y = 1,
                                              .block_z = 1});
    trace.allocations.append({.requested_bytes = 2048, .op = op});
    const Loaded loaded(std::move(trace));
    const auto readout = read_kernels(loaded.index, {CallKind::kKernel, kernel.value});
    EXPECT_EQ(readout.title, "volta_sgemm");
    EXPECT_THAT(readout.rows,
                ElementsAre(Pair("time", "2.00 µs"), Pair("grid", "8 x 2 x 1"),
                            Pair("block", "128 x 1 x 1"), Pair("op", "aten::addmm"),
                            Pair("module", "encoder.layer.1.output.dense"),
                            Pair("phase", "backward"), Pair("gradient of", "aten::linear"),
                            Pair("kernels", "1, 2.00 µs"), Pair("flop", "4,000,000"),
                            Pair("rate", "2 Tflop/s"), Pair("elements", "10 read, 5 written"),
                            Pair("allocates", "2.00 KiB in one tensor")));
}

TEST(ReadKernels, GivesACopyItsBandwidth) {
    Trace trace;
    const auto copy = trace.memcpys.append({.kind = trace.strings.intern("host_to_device"),
                                            .start_ns = 0,
                                            .end_ns = 1000,
                                            .size_bytes = 12'000});
    const Loaded loaded(std::move(trace));
    const auto readout = read_kernels(loaded.index, {CallKind::kMemcpy, copy.value});
    EXPECT_EQ(readout.title, "host_to_device");
    EXPECT_THAT(readout.rows, Contains(Pair("rate", "12 GB/s")));
}

}  // namespace
