// The translation unit that tests/headers/common_headers.h is compiled for.
