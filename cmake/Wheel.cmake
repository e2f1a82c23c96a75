# What `pip install .` puts beside the Python sources of app/python (pyproject.toml): the product and the shared libraries of
# Debian that it needs, in temposcope/bin. torch and CUDA are those of the environment. All of it is of the component `package`.

set(_temposcope_wheel_bin temposcope/bin)

# The command, in the folder for scripts of the environment.
if(SKBUILD)
  install(PROGRAMS "${CMAKE_CURRENT_LIST_DIR}/../app/python/command.py" DESTINATION "${SKBUILD_SCRIPTS_DIR}" RENAME temposcope
    COMPONENT package)
endif()

# Every target of `product`. Its place in bin is its place in the build folder's bin.
function(temposcope_install_product)
  get_target_property(targets product MANUALLY_ADDED_DEPENDENCIES)
  set(files "")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "UTILITY")
      continue()
    endif()
    get_target_property(folder ${target} LIBRARY_OUTPUT_DIRECTORY)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
    cmake_path(APPEND _temposcope_wheel_bin "${folder}" OUTPUT_VARIABLE destination)
    cmake_path(NORMAL_PATH destination)
    # RPATH, not RUNPATH, so that the libraries of Debian find each other by it, too.
    target_link_options(${target} PRIVATE "LINKER:--disable-new-dtags")
    set_target_properties(${target} PROPERTIES
      INSTALL_RPATH "$ORIGIN;$ORIGIN/../../torch/lib;$ORIGIN/../../nvidia/cu13/lib"
      INSTALL_REMOVE_ENVIRONMENT_RPATH ON)
    install(TARGETS ${target} COMPONENT package
      RUNTIME DESTINATION "${destination}" LIBRARY DESTINATION "${destination}")
    list(APPEND files "$<TARGET_FILE:${target}>")
  endforeach()
  foreach(licence imgui/imgui/LICENSE.txt implot/implot/LICENSE glfw/glfw/LICENSE.md)
    cmake_path(GET licence PARENT_PATH name)
    cmake_path(GET name FILENAME name)
    install(FILES "${TEMPOSCOPE_IMGUI_BUNDLE_DIR}/external/${licence}" DESTINATION temposcope/licences RENAME ${name}.txt COMPONENT package)
  endforeach()
  install(CODE "set(files \"${files}\")
    set(carried \"${TEMPOSCOPE_CARRIED}\")
    set(destination \"\${CMAKE_INSTALL_PREFIX}/${_temposcope_wheel_bin}\")
    set(licences \"\${CMAKE_INSTALL_PREFIX}/temposcope/licences\")" COMPONENT package)
  install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/copy_libraries.cmake" COMPONENT package)
endfunction()

# For a clone that scripts/build has built: pip install . -C cmake.define.TEMPOSCOPE_BUILT=$PWD/build
function(temposcope_install_built)
  add_custom_target(product)
  install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND \"${CMAKE_COMMAND}\" --install \"${TEMPOSCOPE_BUILT}\" --prefix \"\${CMAKE_INSTALL_PREFIX}\" --component package --strip)" COMPONENT package)
endfunction()
