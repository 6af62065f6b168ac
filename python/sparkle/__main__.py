"""`sparkle ...` and `python -m sparkle ...`: the command, where the package holds it."""
import os
import pathlib
import sys


def main():
    """Becomes the command, with the arguments that were given; its exit status is the process's."""
    command = pathlib.Path(__file__).parent / "bin" / "sparkle"
    if not command.exists():
        print("sparkle: This package was built without the command; take a wheel of a release, or build it by "
              "'pip install . -C cmake.define.SPARKLE_COMMAND=ON -C cmake.define.SPARKLE_SHARED_COMMAND=ON'.", file=sys.stderr)
        return 2
    sys.stdout.flush()
    os.execv(command, ["sparkle", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
