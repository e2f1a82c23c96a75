#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/device_option.h"
#include "app/commands/page_server.h"
#include "app/commands/reports/page_file.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <optional>

namespace app {
namespace {

struct ViewOptions {
    std::vector<std::string> files;
    std::string output;
    std::string device;
    bool serve = false;
    std::optional<int64_t> port;
};

constexpr int64_t kMaxPort = 65535;

models::Result<void> check(const ViewOptions& options) {
    if (options.output.empty() && !options.serve) {
        return models::fail(
            "Say where the page goes: a file (-o page.html), or a browser of this machine "
            "(--serve).");
    }
    if (!options.output.empty() && options.serve) {
        return models::fail("-o writes the page and --serve hands it to a browser: choose one.");
    }
    if (options.port && (*options.port < 1 || *options.port > kMaxPort)) {
        return models::fail("{} is not a port: choose one from 1 to {} (--port).", *options.port,
                            kMaxPort);
    }
    if (!options.output.empty() && would_replace_a_trace(options.output, options.files)) {
        return models::fail(
            "-o {} names a trace or a part of one, which the page would replace; choose another "
            "name, such as page.html.",
            options.output);
    }
    if (would_replace_another_kind(options.output, {".html", ".htm"})) {
        return models::fail(
            "{} is there already and is no page; choose another name, such as page.html.",
            replaced_file(options.output));
    }
    return {};
}

Outcome write_page(const ViewOptions& options, const std::string& page, Output& output) {
    std::error_code ignored;  // the write reports a folder that cannot be made
    std::filesystem::create_directories(profiler::folder_of(options.output), ignored);
    const auto written = profiler::write_file(options.output, page);
    if (!written) return failed(written.error());
    output.document({{"files", options.files}, {"output", options.output}});
    output.line("wrote " + options.output);
    return ExitCode::kOk;
}

Outcome serve_page(const ViewOptions& options, std::string page, Output& output) {
    auto server = PageServer::listen(std::move(page), static_cast<int>(options.port.value_or(0)));
    if (!server) return failed(server.error());
    const CancelOnInterrupt interrupt(*server);
    output.document({{"files", options.files}, {"address", server->address()}});
    output.line("open " + server->address() + " in a browser; Ctrl+C ends");
    const auto written = output.flush();  // now, because the address is wanted while it serves
    if (!written) return failed(written.error());
    server->run();
    return ExitCode::kOk;
}

Outcome run_view(const ViewOptions& options, Output& output) {
    if (const auto checked = check(options); !checked) return wrong_usage(checked.error());
    std::vector<profiler::NamedTrace> traces;
    for (const std::string& file : options.files) {
        auto named = open_trace(file, options.device);
        if (!named) return failed(named.error());
        traces.push_back(std::move(*named));
    }
    auto page = render_page(traces);
    if (!page) return failed(page.error());
    return options.serve ? serve_page(options, std::move(*page), output)
                         : write_page(options, *page, output);
}

}  // namespace

void add_view_command(CommandLine& line) {
    Command& command = line.add_command("view", "A page for a browser: timeline, blocks, ledger");
    auto options = std::make_shared<ViewOptions>();
    command.add({.names = "FILE",
                 .help = "trace or PyTorch memory snapshot; two for a comparison",
                 .is_required = true,
                 .max_values = 2},
                &options->files);
    command.add({.names = "-o,--output",
                 .help = "page to write; it needs no other file and no network",
                 .value_name = "FILE"},
                &options->output);
    command.add({.names = "--serve",
                 .help = "hand the page to browsers of this machine, on 127.0.0.1, until Ctrl+C"},
                &options->serve);
    command.add({.names = "--port",
                 .help = "with --serve: the port; without it, a free one",
                 .value_name = "N",
                 .needs = "--serve"},
                &options->port);
    command.add(device_option(), &options->device);
    command.footer(
        "On a machine without a display, write the page and copy it, or serve it and forward the "
        "port:\n"
        "  ssh -L 8080:127.0.0.1:8080 machine temposcope view out/tempo.tscope --serve --port 8080"
        "\n\n"
        "Examples:\n"
        "  temposcope view out/original.tscope out/tempo.tscope -o page.html\n"
        "  temposcope view snapshot.pickle --serve\n");
    command.on_run([options](Output& output) { return run_view(*options, output); });
}

}  // namespace app
