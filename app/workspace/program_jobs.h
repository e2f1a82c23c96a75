#pragma once

#include "app/programs/remedy_runs.h"
#include "app/workspace/document.h"
#include "app/workspace/jobs/job_queue.h"
#include "models/config/result.h"
#include "profiler/view/advice/advice_view.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Programs that the window runs in the background, one after the other: a program of the user's,
/// or the program of A with one of its remedies.
namespace app {

/// What the user typed into the dialog.
struct ProgramForm {
    std::string command = "python train.py";  // words as in a shell: quotes keep spaces
    std::string folder;                       // it starts there; empty: where the window started
    std::string gpu = "a100-40gb";  // id of a simulated GPU; empty: this machine's devices
    int64_t steps = 3;              // to record

    friend bool operator==(const ProgramForm&, const ProgramForm&) = default;
};

/// Why the form cannot start a program; empty: it can.
std::string problem_of(const ProgramForm& form);

/// A program that has ended.
struct EndedProgram {
    // Of a run with a remedy:
    DocumentPtr of;               // the document whose program it was
    profiler::RemedyTrial trial;  // what it came to
    DocumentPtr document;         // its trace; null: there is none
    // Of a program of the user's:
    std::filesystem::path file;  // the trace to open; empty: it left none
    std::string sentence;        // what became of it
};

class ProgramJobs {
public:
    ~ProgramJobs() { stop(); }

    void start(const ProgramForm& form);
    /// Runs the program of `document` with the remedy. Does nothing while it runs already.
    void try_remedy(const DocumentPtr& document, const profiler::Remedy& remedy,
                    const profiler::ExplainTarget& target);
    /// Ends what runs, and drops what waits.
    void stop();

    /// What runs, and for how long: "train.py with tempo, 8 s"; empty: nothing.
    std::string running() const;
    /// Whether the program of `document` runs with this remedy, or waits for its turn.
    bool is_trying(const DocumentPtr& document, std::string_view remedy) const;
    bool busy() const { return jobs_.busy(); }
    std::vector<models::Result<EndedProgram>> take();

    /// What runs of this document's program came to so far.
    std::vector<profiler::RemedyTrial> trials_of(const DocumentPtr& document) const;

private:
    void start(std::string name, std::function<models::Result<EndedProgram>()> run);
    void keep(const EndedProgram& ended);

    struct Trials {
        std::weak_ptr<const Document> of;
        std::vector<profiler::RemedyTrial> trials;
    };
    std::vector<Trials> trials_;
    std::vector<std::pair<std::weak_ptr<const Document>, std::string>> tried_;  // ids of remedies
    std::atomic<std::chrono::steady_clock::time_point> started_;                // what runs now
    std::stop_source stop_;
    JobQueue<EndedProgram> jobs_{Waiting::kKeep};
};

}  // namespace app
