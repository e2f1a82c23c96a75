#pragma once

#include "profiler/trace/enumerations.h"
#include "profiler/trace/string_table.h"
#include "profiler/trace/table.h"

#include <cstdint>
#include <tuple>

/// Rows of a trace that only a recorded program has: what failed, what keeps its blocks, what it
/// reads, why its attention is slow.
namespace profiler {

struct Allocation;
struct Device;
struct ModulePath;
struct Op;
struct Phase;
struct Stack;
struct Step;
struct Thread;

/// A request that the allocator could not serve. Of an error that no request explains (a crash, an
/// error of another library), the bytes are -1.
struct Failure {
    StringId error;    // its class: "OutOfMemoryError"
    StringId message;  // as the program saw it
    Id<Device> device;
    Id<Thread> thread;   // that asked
    int64_t event = -1;  // the number that the allocation would have had
    int64_t time_ns = 0;
    int64_t requested_bytes = -1;  // as the op asked; of a CUDA allocator, rounded up to 512
    int64_t allocated_bytes = -1;  // in blocks in use, at that event
    int64_t reserved_bytes = -1;   // in segments
    int64_t free_bytes = -1;       // of the device, below the limit
    int64_t limit_bytes = -1;      // what the allocator may reserve at most
    Id<Step> step;                 // none: outside of every step
    Id<Phase> phase;
    Id<Op> op;
    Id<ModulePath> module_path;
    Id<Stack> stack;
    FailureOutcome outcome = FailureOutcome::kEnded;

    static constexpr int kSince = 3;
    static constexpr auto columns() {
        return std::tuple(Column{"error", &Failure::error}, Column{"message", &Failure::message},
                          Column{"device", &Failure::device}, Column{"thread", &Failure::thread},
                          Column{"event", &Failure::event}, Column{"time_ns", &Failure::time_ns},
                          Column{"requested_bytes", &Failure::requested_bytes},
                          Column{"allocated_bytes", &Failure::allocated_bytes},
                          Column{"reserved_bytes", &Failure::reserved_bytes},
                          Column{"free_bytes", &Failure::free_bytes},
                          Column{"limit_bytes", &Failure::limit_bytes},
                          Column{"step", &Failure::step}, Column{"phase", &Failure::phase},
                          Column{"op", &Failure::op}, Column{"scope", &Failure::module_path},
                          Column{"stack", &Failure::stack}, Column{"outcome", &Failure::outcome});
    }
};

/// Something that refers to a block, so that it cannot be freed. A block with several rows is freed
/// only when all of them let go.
struct Keeper {
    Id<Allocation> allocation;
    int64_t event = -1;  // found when so many events had happened
    KeeperKind kind = KeeperKind::kVariable;
    StringId text;  // "list `history[3]`, train_leak.py:16 (<module>)"
    StringId file;  // of the line that stored it; empty: not known
    int64_t line = -1;

    static constexpr int kSince = 3;
    static constexpr auto columns() {
        return std::tuple(Column{"allocation", &Keeper::allocation},
                          Column{"event", &Keeper::event}, Column{"kind", &Keeper::kind},
                          Column{"text", &Keeper::text}, Column{"file", &Keeper::file},
                          Column{"line", &Keeper::line});
    }
};

/// A line of the program that reads what no kernel computed, or whose op has an assumed result.
struct ValueRead {
    Id<Stack> stack;  // invalid: a thread without Python, as that of backward
    StringId op;      // the outermost that reads: "aten::nonzero"
    ValueReadKind kind = ValueReadKind::kCopy;
    int64_t count = 0;
    StringId answer;         // "zeros", "balanced routing"
    int64_t num_tokens = 0;  // of an assumed routing, the largest one; else 0
    int64_t num_experts = 0;
    int64_t experts_per_token = 0;

    static constexpr int kSince = 3;
    static constexpr auto columns() {
        return std::tuple(Column{"stack", &ValueRead::stack}, Column{"op", &ValueRead::op},
                          Column{"kind", &ValueRead::kind}, Column{"count", &ValueRead::count},
                          Column{"answer", &ValueRead::answer},
                          Column{"num_tokens", &ValueRead::num_tokens},
                          Column{"num_experts", &ValueRead::num_experts},
                          Column{"experts_per_token", &ValueRead::experts_per_token});
    }
};

/// A call of scaled_dot_product_attention that flash attention could not take.
struct SlowAttention {
    Id<Op> op;
    StringId reasons;  // torch's own: "Flash Attention does not support non-null attn_mask."

    static constexpr int kSince = 3;
    static constexpr auto columns() {
        return std::tuple(Column{"op", &SlowAttention::op},
                          Column{"reasons", &SlowAttention::reasons});
    }
};

}  // namespace profiler
