#pragma once

#include "profiler/capture/torch_adapter/op_call.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

/// Small messages between the ranks of a simulated run are real. The ranks are processes that share
/// a folder, and NCCL carries no bytes:
///
///     send, or broadcast of the root ► a file of the bytes, or of the word that nobody knows them
///     recv, or broadcast of another  ► a promise: nothing waits yet
///     a value of the promise is read ► the rank waits for the file
///
/// A message is found by its group, source, target and number. A source that does not run is stood
/// for: the message counts that another group of the same form got from the same place in it. (For
/// a broadcast from rank 3 in {3, 7} that is rank 0's in {0, 4}.)
namespace profiler {

/// From now on this process is rank `rank` of `world_size`, whose processes share `folder`. Once.
void join_ranks(const std::filesystem::path& folder, int64_t rank, int64_t world_size);

/// Called when a call of torch.distributed ends: a message goes or comes, and a sum of small values
/// is that of ranks which hold the same ones. `arguments` are those of the op.
void carry_message(const CollectiveCall& call, std::span<const c10::IValue> arguments);

/// Waits for the promise that holds values of this range, if there is one. Whether it did: they may
/// be known now.
bool keep_promise(const void* address, std::size_t size);
/// The range has other values from now on.
void drop_promises(const void* address, std::size_t size);

/// The ranks of the run that this rank sent to or received from, one to one.
std::vector<int64_t> partners();

}  // namespace profiler
