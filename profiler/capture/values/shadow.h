#pragma once

#include "models/config/routing.h"

#include <cstdint>
#include <string>
#include <vector>

/// What a program reads from a virtual GPU is true where it can be.
///
///   an op begins ► its inputs are known and small ► they are copied
///   an op ends   ► torch's op for the CPU computes the results with them. Of all other ops they
///                  are unknown
///   a copy to the host of unknown bytes ► a value read (value_reads.h)
///
/// Unknown numbers stay so in sums and products. Where an op makes places or verdicts out of them,
/// something stated stands for the result (assumptions.h).
namespace profiler {

enum class ValueMode : uint8_t {
    kZeros,    // unknown values are counted where they are read, and read as zeros
    kComputed  // the shadow computes
};

struct ValueOptions {
    ValueMode mode = ValueMode::kComputed;
    models::Routing routing;
    /// Folders of Python files whose reads are not the program's: the recorder's, and torch's.
    std::string hidden, torch;
    std::string folder;  // that the ranks of the run share; empty: the process is no rank
    int64_t rank = 0;    // of the run
    int64_t world_size = 1;
};

/// From now on the ops of this process are followed. Without a virtual GPU it does nothing, and
/// neither does a second call.
void follow_values(const ValueOptions& options);

/// A model is called: the budget of computed bytes begins anew.
void renew_value_budget();

/// Nothing is recorded any more. A program that has read nothing so far is followed no longer,
/// until it reads something; that read is unknown.
void rest_unless_read();

/// Whether the process has a mixture of experts, and balanced routing was assumed for it.
bool has_balanced_experts();
/// From now on, until it is told otherwise, routing is models::kImbalanced, and the virtual GPU
/// grants more memory than it has: what the program would need is not to end it.
void set_imbalanced(bool wanted);

}  // namespace profiler
