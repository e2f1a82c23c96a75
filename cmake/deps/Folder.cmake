# TEMPOSCOPE_DEPS: the private folder that scripts/setup fills. scripts/lib/common.sh finds it by the same rule.

if(NOT "$ENV{TEMPOSCOPE_DEPS}" STREQUAL "")
  set(_deps "$ENV{TEMPOSCOPE_DEPS}")
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(_deps "$ENV{XDG_CACHE_HOME}/temposcope")
else()
  set(_deps "$ENV{HOME}/.cache/temposcope")
endif()
set(TEMPOSCOPE_DEPS "${_deps}" CACHE PATH "folder that scripts/setup fills: venv/ and the imgui-bundle source")
unset(_deps)

# Stops configure with a sentence that names the remedy, unless `condition` holds.
function(temposcope_require condition sentence)
  if(NOT ${condition})
    message(FATAL_ERROR "${sentence}")
  endif()
endfunction()
