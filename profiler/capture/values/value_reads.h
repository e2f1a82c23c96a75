#pragma once

#include "profiler/capture/values/op_traits.h"
#include "profiler/trace/enumerations.h"
#include "profiler/trace/trace.h"

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// The lines of a program that read a value which no kernel computed, or whose result was assumed.
namespace profiler {

class StackRows;

/// From now on copies of unknown values to the host are counted. A loop that only such values end
/// does not end: after 2,000 reads of one line without a step between them, the read throws
/// std::runtime_error with one sentence. Python files in the folder `hidden` are nobody's, and
/// those in the folder `torch` tell nothing of the program.
void count_value_reads(std::string hidden, std::string torch);

/// Calls `follow` when something is read for the first time. That read does not know its op.
void call_on_first_read(void (*follow)());

/// The ops that run on this thread, so that a read knows its op.
void enter_op(const OpTraits& op, std::span<const c10::IValue> inputs);
void leave_op();

/// What a routing of experts was assumed for.
struct ExpertChoice {
    int64_t num_tokens = 0;
    int64_t num_experts = 0;
    int64_t experts_per_token = 0;
};

/// The op that runs on this thread has a result that `answer` stands for: "balanced routing", of
/// the experts in `choice`. False: one line has assumed too often without a step, as in a loop that
/// waits for another result.
bool count_assumption(ValueReadKind kind, std::string_view answer, const ExpertChoice& choice = {});
/// Whether a routing of experts was assumed so far.
bool has_assumed_routing();

/// A step of the program ends: each line begins a new round.
void begin_rounds();

/// Writes what was counted so far into `trace.value_reads`, in place of what is there.
void write_value_reads(StackRows& stacks, Trace& trace);

}  // namespace profiler
