"""Call one function in this process and print what it returns as JSON: `measuring.in_child` starts it."""

import importlib
import json
import sys


def main() -> None:
    module, function, arguments = sys.argv[1:]
    print(json.dumps(getattr(importlib.import_module(module), function)(*json.loads(arguments))))


if __name__ == "__main__":
    main()
