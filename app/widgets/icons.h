#pragma once

/// Glyphs of Font Awesome 6 Free Solid that the window uses, as UTF-8 text.
#define ICON_ALIGN "\xef\x8c\xb7"                 // f337 left-right
#define ICON_ARROW_DOWN "\xef\x81\xa3"            // f063
#define ICON_ARROW_LEFT "\xef\x81\xa0"            // f060
#define ICON_ARROW_RIGHT "\xef\x81\xa1"           // f061
#define ICON_ARROW_UP "\xef\x81\xa2"              // f062
#define ICON_BOLT "\xef\x83\xa7"                  // f0e7
#define ICON_BOOK "\xef\x80\xad"                  // f02d
#define ICON_CHART_AREA "\xef\x87\xbe"            // f1fe
#define ICON_CHART_COLUMN "\xee\x83\xa3"          // e0e3
#define ICON_CHART_GANTT "\xee\x83\xa4"           // e0e4
#define ICON_CHECK "\xef\x80\x8c"                 // f00c
#define ICON_CHEVRON_DOWN "\xef\x81\xb8"          // f078
#define ICON_CHEVRON_RIGHT "\xef\x81\x94"         // f054
#define ICON_CIRCLE "\xef\x84\x91"                // f111
#define ICON_CIRCLE_INFO "\xef\x81\x9a"           // f05a
#define ICON_CIRCLE_QUESTION "\xef\x81\x99"       // f059
#define ICON_CLOCK "\xef\x80\x97"                 // f017
#define ICON_COPY "\xef\x83\x85"                  // f0c5
#define ICON_CODE_COMPARE "\xee\x84\xba"          // e13a
#define ICON_EXPAND "\xef\x81\xa5"                // f065
#define ICON_FILE "\xef\x85\x9b"                  // f15b
#define ICON_FILE_EXPORT "\xef\x95\xae"           // f56e
#define ICON_FILTER "\xef\x82\xb0"                // f0b0
#define ICON_FIRE "\xef\x81\xad"                  // f06d
#define ICON_FOLDER_OPEN "\xef\x81\xbc"           // f07c
#define ICON_HEART_PULSE "\xef\x88\x9e"           // f21e
#define ICON_IMAGE "\xef\x80\xbe"                 // f03e
#define ICON_KEYBOARD "\xef\x84\x9c"              // f11c
#define ICON_LAYERS "\xef\x97\xbd"                // f5fd
#define ICON_LIST "\xef\x80\xba"                  // f03a
#define ICON_MAGNIFIER "\xef\x80\x82"             // f002
#define ICON_MEMORY "\xef\x94\xb8"                // f538
#define ICON_MOON "\xef\x86\x86"                  // f186
#define ICON_PLAY "\xef\x81\x8b"                  // f04b
#define ICON_RECORD "\xef\x86\x92"                // f192
#define ICON_ROTATE "\xef\x8b\xb1"                // f2f1
#define ICON_ROTATE_LEFT "\xef\x8b\xaa"           // f2ea
#define ICON_SLIDERS "\xef\x87\x9e"               // f1de
#define ICON_STOP "\xef\x81\x8d"                  // f04d
#define ICON_SUN "\xef\x86\x85"                   // f185
#define ICON_SWAP "\xef\x83\xac"                  // f0ec
#define ICON_TABLE "\xef\x83\x8e"                 // f0ce
#define ICON_TERMINAL "\xef\x84\xa0"              // f120
#define ICON_TRIANGLE_EXCLAMATION "\xef\x81\xb1"  // f071
#define ICON_XMARK "\xef\x80\x8d"                 // f00d
