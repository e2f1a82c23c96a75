#pragma once

#include "profiler/analysis/ops/movement.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

/// Short names of ops for pictures. As much of its module's path stands before an op as tells that
/// module from the others of the picture: "query addmm", but "attention.output.dense addmm" beside
/// "output.dense addmm". A last part that the op's name repeats is left out: the dropout of
/// "attention.output.dropout" is "attention.output dropout_forward". A logical op says where it is
/// only if its name occurs in several modules.
namespace profiler {

class OpLabels {
public:
    /// Call it for each op of the picture, then `label_of`.
    void add(const MovementRow& row);
    std::string label_of(const MovementRow& row) const;

private:
    std::string_view place_of(std::string_view module) const;

    std::set<std::pair<std::string, std::string>> seen_;     // module and, of a logical op, name
    std::map<std::string, std::size_t, std::less<>> tails_;  // modules that end so: "output.dense"
    std::map<std::string, std::size_t, std::less<>> logical_names_;  // modules that have such an op
};

}  // namespace profiler
