#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The enumerations of a trace: the file holds the value, people read the name.
namespace profiler {

enum class Source : uint8_t { kMeasuredCpu, kMeasuredCuda, kPredicted, kImported };
inline constexpr std::array<std::string_view, 4> kSourceNames{"measured_cpu", "measured_cuda",
                                                              "predicted", "imported"};

enum class TimeBasis : uint8_t { kMeasured, kModelled, kEventOrder };
inline constexpr std::array<std::string_view, 3> kTimeBasisNames{"measured", "modelled",
                                                                 "event_order"};

enum class RunState : uint8_t { kComplete, kIncomplete };
inline constexpr std::array<std::string_view, 2> kRunStateNames{"complete", "incomplete"};

enum class Severity : uint8_t { kInfo, kWarning, kError };
inline constexpr std::array<std::string_view, 3> kSeverityNames{"info", "warning", "error"};

enum class PhaseKind : uint8_t { kForward, kLoss, kBackward, kOptimizer };
inline constexpr std::array<std::string_view, 4> kPhaseKindNames{"forward", "loss", "backward",
                                                                 "optimizer"};

/// Operator classes of Ivanov et al., "Data Movement Is All You Need", Table 1.
enum class OpClass : uint8_t { kContraction, kNormalization, kElementWise, kOther };
inline constexpr std::array<std::string_view, 4> kOpClassNames{"contraction", "normalization",
                                                               "element_wise", "other"};

/// What a storage is for; its `role` in files and reports. At least one op saves an activation for
/// backward; no op saves a temporary; a workspace is scratch memory of a library.
enum class Category : uint8_t {
    kParameter,
    kGradient,
    kOptimizerState,
    kActivation,
    kTemporary,
    kWorkspace,
    kInput,
    kUnknown
};
inline constexpr std::array<std::string_view, 8> kCategoryNames{
    "parameter", "gradient",  "optimizer_state", "activation",
    "temporary", "workspace", "input",           "unknown"};

enum class DType : uint8_t {
    kFloat32,
    kFloat16,
    kBFloat16,
    kFloat64,
    kBool,
    kUInt8,
    kInt8,
    kInt16,
    kInt32,
    kInt64,
    kOther
};
inline constexpr std::array<std::string_view, 11> kDTypeNames{
    "float32", "float16", "bfloat16", "float64", "bool", "uint8",
    "int8",    "int16",   "int32",    "int64",   "other"};

enum class Access : uint8_t { kRead, kWrite };
inline constexpr std::array<std::string_view, 2> kAccessNames{"read", "write"};

enum class AllocatorAction : uint8_t {
    kSegmentAlloc,
    kSegmentFree,
    kSegmentMap,
    kSegmentUnmap,
    kOom,
    kSnapshot
};
inline constexpr std::array<std::string_view, 6> kAllocatorActionNames{
    "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot"};

enum class SweepOutcome : uint8_t { kOk, kOutOfMemory };
inline constexpr std::array<std::string_view, 2> kSweepOutcomeNames{"ok", "out_of_memory"};

enum class CollectiveKind : uint8_t {
    kAllReduce,
    kAllGather,
    kReduceScatter,
    kBroadcast,
    kReduce,
    kGather,
    kScatter,
    kAllToAll,
    kSend,
    kRecv,
    kBarrier,
    kOther
};
inline constexpr std::array<std::string_view, 12> kCollectiveKindNames{
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",  "gather",
    "scatter",    "all_to_all", "send",           "recv",      "barrier", "other"};

constexpr std::string_view name_of(Source v) { return kSourceNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(TimeBasis v) { return kTimeBasisNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(RunState v) { return kRunStateNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(Severity v) { return kSeverityNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(PhaseKind v) { return kPhaseKindNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(OpClass v) { return kOpClassNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(Category v) { return kCategoryNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(DType v) { return kDTypeNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(Access v) { return kAccessNames[static_cast<size_t>(v)]; }
constexpr std::string_view name_of(AllocatorAction v) {
    return kAllocatorActionNames[static_cast<size_t>(v)];
}
constexpr std::string_view name_of(SweepOutcome v) {
    return kSweepOutcomeNames[static_cast<size_t>(v)];
}
constexpr std::string_view name_of(CollectiveKind v) {
    return kCollectiveKindNames[static_cast<size_t>(v)];
}

/// Bytes of one element; 0 for kOther: not known.
constexpr int64_t element_bytes(DType dtype) {
    // By DType, in the order of kDTypeNames.
    constexpr std::array<int64_t, kDTypeNames.size()> kBytes{4, 2, 2, 8, 1, 1, 1, 2, 4, 8, 0};
    return kBytes[static_cast<std::size_t>(dtype)];
}
static_assert(element_bytes(DType::kInt64) == 8 && element_bytes(DType::kBFloat16) == 2);

}  // namespace profiler
