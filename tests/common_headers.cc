// The translation unit that tests/common_headers.h is compiled for.
