// What the window's tests need to run under a sanitizer.
#if defined(__SANITIZE_ADDRESS__)  // of GCC, which the preset `sanitize` uses

/// Drivers of OpenGL stay loaded, so that a leak of theirs has their name.
extern "C" __attribute__((visibility("default"))) int dlclose(void*) { return 0; }

/// Leaks of drivers and of X11 are not ours.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
    return "leak:swrast_dri\nleak:libgallium\nleak:libGLX\nleak:libX11\nleak:libEGL\n";
}

#elif defined(__SANITIZE_THREAD__)

/// Drivers of OpenGL draw on threads of their own, and are not instrumented.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
    return "race:swrast_dri\nrace:libgallium\n";
}

#endif
