#pragma once

#include "profiler/formats/kineto/kineto_events.h"
#include "profiler/formats/kineto/kineto_ops.h"

#include <span>
#include <utility>

namespace profiler::kineto {

/// What the profiler's Python tracer (with_stack, with_modules) knows: the call stack of each
/// allocation, and the module of each op, as rows of `frame`, `stack` and `scope`.
///
///     nn.Module: BertModel_0 > nn.Module: BertLayer_3 > nn.Module: Linear_21
///     is the path BertModel.BertLayer.3.Linear
///
/// A class whose name ends in Layer or Block is numbered by its instances. Others are numbered
/// within their parent, from the second one on. Ops of backward belong to the module of their
/// forward op. Files of 2021 have a text with the stack of each op instead, and files that
/// Temposcope wrote have the stack of each allocation, `of_allocations`.
void add_python(const KinetoEvents& events, int64_t start_ns, OpRows& ops,
                std::span<const std::pair<Id<Allocation>, StackOfEvent>> of_allocations,
                Trace& trace);

}  // namespace profiler::kineto
