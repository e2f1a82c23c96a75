#pragma once

#include "profiler/formats/snapshot/plain_values.h"
#include "profiler/formats/snapshot/pytorch_snapshot.h"

#include <memory>

namespace profiler {

/// Makes a PytorchSnapshot of the dictionary of a snapshot. What a dictionary stands for follows
/// from its keys:
///
///     action ─► event      state ─► block      blocks ─► segment      line, filename ─► frame
///     stage ─► annotation  segments, device_traces ─► the snapshot
///
/// Errors of extend(): impossible values, the same values used twice.
class SnapshotFold : public ValueFold {
public:
    SnapshotFold();
    ~SnapshotFold() override;

    PlainValue text(std::string_view text) override;
    models::Result<PlainValue> extend(PlainValue container,
                                      std::span<const PlainValue> items) override;
    std::size_t memory_bytes() const override;
    void advance(double share) override;

    /// The snapshot, once the fold has seen all of it. Errors: `root` is something else.
    models::Result<PytorchSnapshot> finish(const PlainValue& root);

private:
    class Rows;
    std::unique_ptr<Rows> rows_;
};

}  // namespace profiler
