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

/// The first step of a training is a step of its own kind: optimizer state is born in it, libraries
/// load. A broken step did not end: the program ran out of memory in it, crashed or was stopped.
enum class StepKind : uint8_t { kWhole, kFirst, kBroken };
inline constexpr std::array<std::string_view, 3> kStepKindNames{"whole", "first", "broken"};

/// Inference is forward without gradients beside the training: of a validation, or of a model that
/// is frozen.
enum class PhaseKind : uint8_t { kForward, kLoss, kBackward, kOptimizer, kInference };
inline constexpr std::array<std::string_view, 5> kPhaseKindNames{"forward", "loss", "backward",
                                                                 "optimizer", "inference"};

/// Operator classes of Ivanov et al., "Data Movement Is All You Need", Table 1.
enum class OpClass : uint8_t { kContraction, kNormalization, kElementWise, kOther };
inline constexpr std::array<std::string_view, 4> kOpClassNames{"contraction", "normalization",
                                                               "element_wise", "other"};

/// What a storage is for; its `role` in files and reports. At least one op saves an activation for
/// backward; no op saves a temporary; a workspace is scratch memory of a library; a held storage
/// lives past its last use because the program still refers to it. A recomputed storage is an
/// activation that a checkpoint makes again in backward; a weight copy is one of a set that has
/// the parameters' sizes (a moving average, master weights, a frozen twin).
enum class Category : uint8_t {
    kParameter,
    kGradient,
    kOptimizerState,
    kActivation,
    kTemporary,
    kWorkspace,
    kInput,
    kUnknown,
    kHeld,
    kRecomputed,
    kWeightCopy
};
inline constexpr std::array<std::string_view, 11> kCategoryNames{
    "parameter", "gradient", "optimizer_state", "activation", "temporary", "workspace", "input",
    "unknown",   "held",     "recomputed",      "weight_copy"};

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
    kOther,
    kUInt16,
    kUInt32,
    kUInt64,
    kFloat8E4M3,
    kFloat8E5M2,
    kComplex64,
    kComplex128
};
inline constexpr std::array<std::string_view, 18> kDTypeNames{
    "float32", "float16", "bfloat16",      "float64",     "bool",      "uint8",
    "int8",    "int16",   "int32",         "int64",       "other",     "uint16",
    "uint32",  "uint64",  "float8_e4m3fn", "float8_e5m2", "complex64", "complex128"};

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

/// What became of a program when memory ran out: the error ended it, the program caught the error,
/// or torch absorbed it and went on (cuDNN tries algorithms until one fits).
enum class FailureOutcome : uint8_t { kEnded, kCaught, kAbsorbed };
inline constexpr std::array<std::string_view, 3> kFailureOutcomeNames{"ended", "caught",
                                                                      "absorbed"};

/// What refers to a block of memory. kCpp: only C++ code does. kCollector: nothing does, and the
/// garbage collector of Python has yet to free it.
enum class KeeperKind : uint8_t {
    kVariable,
    kFrame,
    kAttribute,
    kContainer,
    kParameter,
    kGradient,
    kOptimizer,
    kAutograd,
    kClosure,
    kGenerator,
    kException,
    kCpp,
    kCollector
};
inline constexpr std::array<std::string_view, 13> kKeeperKindNames{
    "variable", "frame",   "attribute", "container", "parameter", "gradient", "optimizer",
    "autograd", "closure", "generator", "exception", "cpp",       "collector"};

/// What a program does with a value that no kernel computed, the worst first.
enum class ValueReadKind : uint8_t {
    kSize,     // an op sizes its result by it
    kInteger,  // a whole number, which may be a size
    kBranch,   // a truth value
    kRouting,  // nothing: a stated choice of experts stands for it
    kNumber,   // a floating number, which may be printed
    kCopy,     // a tensor that moves to the host
    kAssumed   // nothing: another stated value stands for it
};
inline constexpr std::array<std::string_view, 7> kValueReadKindNames{
    "size", "integer", "branch", "routing", "number", "copy", "assumed"};

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
constexpr std::string_view name_of(StepKind v) { return kStepKindNames[static_cast<size_t>(v)]; }
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
constexpr std::string_view name_of(FailureOutcome v) {
    return kFailureOutcomeNames[static_cast<size_t>(v)];
}
constexpr std::string_view name_of(KeeperKind v) {
    return kKeeperKindNames[static_cast<size_t>(v)];
}
constexpr std::string_view name_of(ValueReadKind v) {
    return kValueReadKindNames[static_cast<size_t>(v)];
}
constexpr std::string_view name_of(CollectiveKind v) {
    return kCollectiveKindNames[static_cast<size_t>(v)];
}

/// False: something stated stands for the value, and nobody read it.
constexpr bool is_value_read(ValueReadKind kind) {
    return kind != ValueReadKind::kRouting && kind != ValueReadKind::kAssumed;
}
/// Whether the memory of a step may hang on it.
constexpr bool decides(ValueReadKind kind) {
    return kind == ValueReadKind::kSize || kind == ValueReadKind::kInteger ||
           kind == ValueReadKind::kBranch;
}

/// Bytes of one element; 0 for kOther: not known.
constexpr int64_t element_bytes(DType dtype) {
    // By DType, in the order of kDTypeNames.
    constexpr std::array<int64_t, kDTypeNames.size()> kBytes{4, 2, 2, 8, 1, 1, 1, 2, 4,
                                                             8, 0, 2, 4, 8, 1, 1, 8, 16};
    return kBytes[static_cast<std::size_t>(dtype)];
}
static_assert(element_bytes(DType::kInt64) == 8 && element_bytes(DType::kUInt64) == 8 &&
              element_bytes(DType::kComplex128) == 16);
/// The same; 4 where it is not known, which is usual.
constexpr int64_t likely_element_bytes(DType dtype) {
    const int64_t bytes = element_bytes(dtype);
    return bytes > 0 ? bytes : 4;
}

}  // namespace profiler
